// SPDX-License-Identifier: Apache-2.0

// Statuses that the installed CustomResourceDefinition can't store.

package reporting

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/failure"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// crdMismatchRetry is how often a status is sent nevertheless.
const crdMismatchRetry = 5 * time.Minute

// CRDMismatch remembers statuses that the installed CustomResourceDefinition does not
// store: it prunes fields that it does not know, or has no status subresource. Sending
// them again would have the same result, at each resync and for ever. From time to time
// one is sent nevertheless, because the definition may have been replaced.
type CRDMismatch struct {
	Clock clock.PassiveClock

	mu sync.Mutex
	// retry is when the next status may be sent that would not be stored; zero if all
	// have been.
	retry time.Time
	// none is true if there is no status subresource.
	none bool
	// pruned are the statuses that were stored otherwise than they were sent.
	pruned map[cache.ObjectName]sentStatus
}

// sentStatus is a status as it was sent for a Foo.
type sentStatus struct {
	foo    types.UID
	status samplev1alpha1.FooStatus
}

// WouldRecur reports whether a Foo's status would not be stored again.
func (m *CRDMismatch) WouldRecur(foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.Clock.Now().Before(m.retry) {
		return false
	}
	known, ok := m.pruned[cache.MetaObjectToName(foo)]
	return m.none || ok && known.foo == foo.UID && sameButTimes(known.status, status)
}

// NoSubresource records that there is no status subresource, and returns an error that
// says so.
func (m *CRDMismatch) NoSubresource() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.none = true
	m.retry = m.Clock.Now().Add(crdMismatchRetry)
	return fmt.Errorf("foos.samplecontroller.k8s.io has no status subresource: %w", failure.ErrCRDMismatch)
}

// Observe compares the status that the API server stored for a Foo with the one that was
// sent. It returns an error if they differ for the first time.
func (m *CRDMismatch) Observe(foo *samplev1alpha1.Foo, sent, stored samplev1alpha1.FooStatus) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.none = false
	key := cache.MetaObjectToName(foo)
	if sameButTimes(sent, stored) {
		delete(m.pruned, key)
		return nil
	}
	if m.pruned == nil {
		m.pruned = map[cache.ObjectName]sentStatus{}
	}
	m.pruned[key] = sentStatus{foo.UID, sent}
	told := !m.retry.IsZero()
	m.retry = m.Clock.Now().Add(crdMismatchRetry)
	if told {
		return nil
	}
	return fmt.Errorf("foos.samplecontroller.k8s.io prunes fields of the status: %w", failure.ErrCRDMismatch)
}

// LastSent returns the status that was last sent for a Foo, stored or not.
func (m *CRDMismatch) LastSent(foo *samplev1alpha1.Foo) samplev1alpha1.FooStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.pruned[cache.MetaObjectToName(foo)]; ok && known.foo == foo.UID {
		return known.status
	}
	return foo.Status
}

// Delete forgets a Foo that is gone.
func (m *CRDMismatch) Delete(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pruned, key)
}

// sameButTimes compares statuses without the times of their conditions: these are stored
// in whole seconds, and a condition that was not stored has another time each time.
func sameButTimes(a, b samplev1alpha1.FooStatus) bool {
	return equality.Semantic.DeepEqual(withoutTimes(a), withoutTimes(b))
}

func withoutTimes(status samplev1alpha1.FooStatus) samplev1alpha1.FooStatus {
	status = *status.DeepCopy()
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return status
}

// Len returns of how many Foos a status is remembered.
func (m *CRDMismatch) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pruned)
}
