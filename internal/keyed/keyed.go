/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package keyed

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// memory is what is remembered of Foos from one sync to the next. It is safe for
// concurrent use, and its zero value is empty.
type Map[V any] struct {
	mu    sync.Mutex
	byFoo map[cache.ObjectName]V
}

// recall returns what is remembered of a Foo, and whether anything is.
func (m *Map[V]) Get(key cache.ObjectName) (value V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, known = m.byFoo[key]
	return value, known
}

// remember keeps a value in the place of what was remembered of a Foo.
func (m *Map[V]) Set(key cache.ObjectName, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byFoo == nil {
		m.byFoo = map[cache.ObjectName]V{}
	}
	m.byFoo[key] = value
}

// forget drops what is remembered of a Foo.
func (m *Map[V]) Delete(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byFoo, key)
}

// count returns of how many Foos something is remembered.
func (m *Map[V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.byFoo)
}
