// SPDX-License-Identifier: Apache-2.0

// Statuses that the installed CustomResourceDefinition can't store.

package memory

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/plan"
)

// crdMismatchRetry is how often a status is sent nevertheless.
const crdMismatchRetry = 5 * time.Minute

// CRDMismatch records that the installed CustomResourceDefinition does not store statuses: it
// prunes fields that it does not know, or has no status subresource. Sending the same again
// would have the same result, at each resync and for ever. From time to time one is sent
// nevertheless, because the definition may have been replaced. It is safe for concurrent use.
type CRDMismatch struct {
	Clock clock.PassiveClock
	// Resource is that of the owners.
	Resource schema.GroupResource

	mu sync.Mutex
	// retry is when the next status may be sent that would not be stored; zero if all
	// have been.
	retry time.Time
	// none is true if there is no status subresource.
	none bool
}

// WouldRecur reports whether the status of an owner would not be stored again. pruned is the
// last one that was not, or nil.
func (m *CRDMismatch) WouldRecur(pruned, after plan.Owner) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.Clock.Now().Before(m.retry) {
		return false
	}
	return m.none || pruned != nil && sameButTimes(pruned, after)
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

// Observe compares the status that the API server stored for an owner with the one that was
// sent. If they differ, it returns the owner with that status, and for the first time an
// error.
func (m *CRDMismatch) Observe(sent, stored plan.Owner) (pruned plan.Owner, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.none = false
	if sameButTimes(sent, stored) {
		return nil, nil
	}
	pruned = plan.CopyOf(sent)
	pruned.SetResourceVersion("") // its status matters, and no version
	told := !m.retry.IsZero()
	m.retry = m.Clock.Now().Add(crdMismatchRetry)
	if told {
		return pruned, nil
	}
	return pruned, fmt.Errorf("%s prunes fields of the status: %w", m.Resource, failure.ErrCRDMismatch)
}

// sameButTimes compares statuses without the times of their conditions: these are stored
// in whole seconds, and a condition that was not stored has another time each time.
func sameButTimes(a, b plan.Owner) bool {
	return sameStatus(withoutTimes(a), withoutTimes(b))
}

func withoutTimes(owner plan.Owner) plan.Owner {
	owner = plan.CopyOf(owner)
	for i := range *owner.GetConditions() {
		(*owner.GetConditions())[i].LastTransitionTime = metav1.Time{}
	}
	return owner
}
