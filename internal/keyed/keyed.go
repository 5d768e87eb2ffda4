// SPDX-License-Identifier: Apache-2.0

// Package keyed has the map in which a controller remembers something of each object from
// one sync to the next.
package keyed

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// Map holds values by the keys of objects. It is safe for concurrent use, and its zero
// value is empty.
type Map[V any] struct {
	mu    sync.Mutex
	byKey map[cache.ObjectName]V
}

// Get returns the value of a key, and whether there is one.
func (m *Map[V]) Get(key cache.ObjectName) (value V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, known = m.byKey[key]
	return value, known
}

// Set stores a value in place of the last one of the key.
func (m *Map[V]) Set(key cache.ObjectName, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil {
		m.byKey = map[cache.ObjectName]V{}
	}
	m.byKey[key] = value
}

// Delete removes the value of a key.
func (m *Map[V]) Delete(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}

// Len returns the number of values.
func (m *Map[V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.byKey)
}
