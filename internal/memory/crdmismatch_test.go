// SPDX-License-Identifier: Apache-2.0

// Tests of statuses that the installed definition does not store.

package memory

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestAMismatchOfTheDefinitionIsToldOnce(t *testing.T) {
	mismatch := CRDMismatch{Clock: clocktesting.NewFakePassiveClock(footest.Now.Time)}
	sent, pruned := footest.Settled("a"), samplev1alpha1.FooStatus{ObservedGeneration: 1}
	for i, name := range []string{"a", "a", "b"} {
		if _, err := mismatch.Observe(withStatus(name, sent), withStatus(name, pruned)); errors.Is(err, failure.ErrCRDMismatch) != (i == 0) {
			t.Errorf("status %d that is not stored as sent: %v", i+1, err)
		}
	}
}

func withStatus(name string, status samplev1alpha1.FooStatus) *samplev1alpha1.Foo {
	return footest.Foo(name, footest.WithStatus(status))
}

// newMismatch returns what is remembered after a status of Foo "a" was pruned.
func newMismatch(t *testing.T) (m *CRDMismatch, clock *clocktesting.FakeClock, pruned plan.Owner) {
	t.Helper()
	clock = clocktesting.NewFakeClock(footest.Now.Time)
	m = &CRDMismatch{Clock: clock}
	pruned, _ = m.Observe(withStatus("a", footest.Settled("a")), withStatus("a", samplev1alpha1.FooStatus{ObservedGeneration: 1}))
	if pruned == nil {
		t.Fatal("a pruned status is not remembered")
	}
	return m, clock, pruned
}

func TestAPrunedStatusIsSentSeldom(t *testing.T) {
	m, clock, pruned := newMismatch(t)
	later := footest.Settled("a")
	later.Conditions[0].LastTransitionTime = footest.Now
	for what, row := range map[string]struct {
		foo  *samplev1alpha1.Foo
		want bool
	}{
		"the same":        {withStatus("a", footest.Settled("a")), true},
		"the same, later": {withStatus("a", later), true},
		"another status":  {withStatus("a", footest.RefusedStatus()), false},
	} {
		if got := m.WouldRecur(pruned, row.foo); got != row.want {
			t.Errorf("%s would be pruned again: %v, want %v", what, got, row.want)
		}
	}
	sent := withStatus("a", footest.Settled("a"))
	if m.WouldRecur(nil, sent) {
		t.Error("that of a Foo of which nothing is remembered would be pruned")
	}
	clock.Step(crdMismatchRetry - 1)
	if !m.WouldRecur(pruned, sent) {
		t.Error("it is sent early")
	}
	clock.Step(1)
	if m.WouldRecur(pruned, sent) {
		t.Error("it is never sent again")
	}
}

func TestAMismatchEndsWhenAStatusIsStored(t *testing.T) {
	m, _, _ := newMismatch(t)
	if pruned, err := m.Observe(withStatus("a", footest.Settled("a")), withStatus("a", footest.Settled("a"))); pruned != nil || err != nil {
		t.Errorf("a status that was stored as sent is remembered: %v, %v", pruned, err)
	}
}

// TestWithoutASubresourceNoStatusIsSent: of any Foo, until one is stored.
func TestWithoutASubresourceNoStatusIsSent(t *testing.T) {
	clock := clocktesting.NewFakeClock(footest.Now.Time)
	m, foo := &CRDMismatch{Clock: clock}, withStatus("b", footest.Settled("b"))
	if m.WouldRecur(nil, foo) {
		t.Error("at first no status is sent")
	}
	if err := m.NoSubresource(); !errors.Is(err, failure.ErrCRDMismatch) || !m.WouldRecur(nil, foo) {
		t.Errorf("without a subresource (%v) a status is sent", err)
	}
	clock.Step(crdMismatchRetry)
	if m.WouldRecur(nil, foo) {
		t.Error("no status is ever sent again")
	}
	_ = m.NoSubresource()
	if _, _ = m.Observe(withStatus("a", footest.Settled("a")), withStatus("a", footest.Settled("a"))); m.WouldRecur(nil, foo) {
		t.Error("a status was stored, and others are not sent")
	}
}

// TestConcurrentStatuses fails with the race detector.
func TestConcurrentStatuses(t *testing.T) {
	m, _, pruned := newMismatch(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			foo := withStatus(fmt.Sprint("foo-", i), footest.Settled("a"))
			for range 200 {
				_, _ = m.Observe(foo, withStatus(foo.Name, samplev1alpha1.FooStatus{}))
				_ = m.WouldRecur(pruned, foo)
				_ = m.NoSubresource()
			}
		})
	}
	wg.Wait()
}
