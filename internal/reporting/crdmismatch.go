// SPDX-License-Identifier: Apache-2.0

// Statuses that the installed CustomResourceDefinition can't store.

package reporting

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/plan"
)

// crdMismatchRetry is how often a status is sent nevertheless.
const crdMismatchRetry = 5 * time.Minute

// CRDMismatch remembers statuses that the installed CustomResourceDefinition does not
// store: it prunes fields that it does not know, or has no status subresource. Sending
// them again would have the same result, at each resync and for ever. From time to time
// one is sent nevertheless, because the definition may have been replaced.
type CRDMismatch struct {
	Clock clock.PassiveClock
	// Resource is that of the Foos.
	Resource schema.GroupResource

	mu sync.Mutex
	// retry is when the next status may be sent that would not be stored; zero if all
	// have been.
	retry time.Time
	// none is true if there is no status subresource.
	none bool
	// pruned are Foos as they were sent with a status that was stored otherwise.
	pruned map[cache.ObjectName]plan.Owner
}

// WouldRecur reports whether the status of a Foo would not be stored again.
func (m *CRDMismatch) WouldRecur(owner plan.Owner) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.Clock.Now().Before(m.retry) {
		return false
	}
	known, ok := m.pruned[cache.MetaObjectToName(owner)]
	return m.none || ok && known.GetUID() == owner.GetUID() && sameButTimes(known, owner)
}

// NoSubresource records that there is no status subresource, and returns an error that
// says so.
func (m *CRDMismatch) NoSubresource() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.none = true
	m.retry = m.Clock.Now().Add(crdMismatchRetry)
	return fmt.Errorf("%s has no status subresource: %w", m.Resource, failure.ErrCRDMismatch)
}

// Observe compares the status that the API server stored for a Foo with the one that was
// sent. It returns an error if they differ for the first time.
func (m *CRDMismatch) Observe(sent, stored plan.Owner) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.none = false
	key := cache.MetaObjectToName(sent)
	if sameButTimes(sent, stored) {
		delete(m.pruned, key)
		return nil
	}
	if m.pruned == nil {
		m.pruned = map[cache.ObjectName]plan.Owner{}
	}
	m.pruned[key] = copyOf(sent)
	m.pruned[key].SetResourceVersion("") // that of the status matters, and no other
	told := !m.retry.IsZero()
	m.retry = m.Clock.Now().Add(crdMismatchRetry)
	if told {
		return nil
	}
	return fmt.Errorf("%s prunes fields of the status: %w", m.Resource, failure.ErrCRDMismatch)
}

// LastSent returns a Foo with the status that was last sent for it, stored or not.
func (m *CRDMismatch) LastSent(owner plan.Owner) plan.Owner {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.pruned[cache.MetaObjectToName(owner)]; ok && known.GetUID() == owner.GetUID() {
		return known
	}
	return owner
}

// Delete forgets a Foo that is gone.
func (m *CRDMismatch) Delete(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pruned, key)
}

// sameButTimes compares statuses without the times of their conditions: these are stored
// in whole seconds, and a condition that was not stored has another time each time.
func sameButTimes(a, b plan.Owner) bool {
	return sameStatus(withoutTimes(a), withoutTimes(b))
}

func withoutTimes(owner plan.Owner) plan.Owner {
	owner = copyOf(owner)
	for i := range *owner.GetConditions() {
		(*owner.GetConditions())[i].LastTransitionTime = metav1.Time{}
	}
	return owner
}

// Len returns of how many Foos a status is remembered.
func (m *CRDMismatch) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pruned)
}
