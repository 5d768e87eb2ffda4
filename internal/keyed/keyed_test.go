// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/client-go/tools/cache"
)

func TestMap(t *testing.T) {
	var m Map[int]
	a, b := cache.ObjectName{Namespace: "team-a", Name: "a"}, cache.ObjectName{Namespace: "team-b", Name: "a"}
	m.Delete(a) // of an empty map
	m.Set(a, 1)
	m.Set(a, 2)
	m.Set(b, 3)
	if value, known := m.Get(a); value != 2 || !known || m.Len() != 2 {
		t.Errorf("a is %d (%v), and there are %d", value, known, m.Len())
	}
	m.Delete(a)
	if value, known := m.Get(a); value != 0 || known || m.Len() != 1 {
		t.Errorf("a is %d (%v) after its deletion, and there are %d", value, known, m.Len())
	}
}

func TestConcurrentUse(t *testing.T) {
	var m Map[int]
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 1000 {
				key := cache.ObjectName{Name: fmt.Sprint(worker, i%10)}
				m.Set(key, i)
				if value, known := m.Get(key); value != i || !known {
					t.Errorf("%s is %d (%v), want %d", key, value, known, i)
				}
				m.Len()
				m.Delete(key)
			}
		})
	}
	wg.Wait()
	if m.Len() != 0 {
		t.Errorf("%d values are left", m.Len())
	}
}
