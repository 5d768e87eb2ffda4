// SPDX-License-Identifier: Apache-2.0

// Tests of statuses that the installed definition does not store.

package memory

import (
	"errors"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func withStatus(name string, status samplev1alpha1.FooStatus) *samplev1alpha1.Foo {
	return footest.Foo(name, footest.WithStatus(status))
}

// newMismatch returns what is remembered after a status of Foo "a" was pruned.
func newMismatch(t *testing.T) (m *CRDMismatch, clock *clocktesting.FakeClock, pruned plan.Owner) {
	t.Helper()
	clock = clocktesting.NewFakeClock(footest.Now.Time)
	m = &CRDMismatch{Clock: clock}
	for i, name := range []string{"b", "b", "a"} {
		var err error
		pruned, err = m.Observe(withStatus(name, footest.Settled("a")), withStatus(name, samplev1alpha1.FooStatus{ObservedGeneration: 1}))
		footest.ExpectEqual(t, "told", i == 0, errors.Is(err, failure.ErrCRDMismatch)) // once
	}
	if pruned == nil {
		t.Fatal("a pruned status is not remembered")
	}
	return m, clock, pruned
}

func TestAPrunedStatusIsSentSeldom(t *testing.T) {
	m, clock, pruned := newMismatch(t)
	expect := func(what string, want bool, pruned plan.Owner, status samplev1alpha1.FooStatus) {
		t.Helper()
		footest.ExpectEqual(t, what+" would be pruned again", want, m.WouldRecur(pruned, withStatus("a", status)))
	}
	settled, later := footest.Settled("a"), footest.Settled("a")
	later.Conditions[0].LastTransitionTime = footest.Now
	expect("the same", true, pruned, settled)
	expect("the same, later,", true, pruned, later)
	expect("another status", false, pruned, footest.RefusedStatus())
	expect("that of a Foo of which nothing is remembered", false, nil, settled)
	clock.Step(crdMismatchRetry - 1)
	expect("the same, at the last moment,", true, pruned, settled)
	clock.Step(1)
	expect("one that is sent to see", false, pruned, settled)
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
	expect := func(when string, want bool) {
		t.Helper()
		footest.ExpectEqual(t, "a status waits "+when, want, m.WouldRecur(nil, foo))
	}
	expect("at first", false)
	if err := m.NoSubresource(); !errors.Is(err, failure.ErrCRDMismatch) {
		t.Errorf("the error is %v", err)
	}
	expect("without a subresource", true)
	clock.Step(crdMismatchRetry)
	expect("for ever", false)
	_ = m.NoSubresource()
	_, _ = m.Observe(foo, foo)
	expect("when another was stored", false)
}
