// SPDX-License-Identifier: Apache-2.0

// Tests of statuses that the installed definition does not store.

package reporting

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/internal/failure"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestAMismatchOfTheDefinitionIsToldOnce(t *testing.T) {
	mismatch := CRDMismatch{Clock: clocktesting.NewFakePassiveClock(footest.Now.Time)}
	sent, pruned := footest.Settled("a"), samplev1alpha1.FooStatus{ObservedGeneration: 1}
	for i, name := range []string{"a", "a", "b"} {
		if err := mismatch.Observe(withStatus(name, sent), withStatus(name, pruned)); errors.Is(err, failure.ErrCRDMismatch) != (i == 0) {
			t.Errorf("status %d that is not stored as sent: %v", i+1, err)
		}
	}
}

func withStatus(name string, status samplev1alpha1.FooStatus) *samplev1alpha1.Foo {
	return footest.Foo(name, footest.WithStatus(status))
}

// newMismatch returns what is remembered after a status of Foo "a" was pruned.
func newMismatch() (m *CRDMismatch, clock *clocktesting.FakeClock, sent samplev1alpha1.FooStatus) {
	clock = clocktesting.NewFakeClock(footest.Now.Time)
	m, sent = &CRDMismatch{Clock: clock}, footest.Settled("a")
	_ = m.Observe(withStatus("a", sent), withStatus("a", samplev1alpha1.FooStatus{ObservedGeneration: 1}))
	return m, clock, sent
}

func TestAPrunedStatusIsSentSeldom(t *testing.T) {
	m, clock, sent := newMismatch()
	later := *sent.DeepCopy()
	later.Conditions[0].LastTransitionTime = footest.Now
	for what, row := range map[string]struct {
		foo  *samplev1alpha1.Foo
		want bool
	}{
		"the same":                {withStatus("a", sent), true},
		"the same, later":         {withStatus("a", later), true},
		"another status":          {withStatus("a", footest.RefusedStatus()), false},
		"another Foo":             {withStatus("b", sent), false},
		"another Foo of the name": {footest.Foo("a", footest.WithFooUID("uid-new"), footest.WithStatus(sent)), false},
	} {
		if got := m.WouldRecur(row.foo); got != row.want {
			t.Errorf("%s would be pruned again: %v, want %v", what, got, row.want)
		}
	}
	if got := m.LastSent(footest.Foo("a")); !equality.Semantic.DeepEqual(got.GetStatus(), &sent) {
		t.Errorf("the status that was sent last is %+v", got)
	}
	if got := m.LastSent(footest.Foo("a", footest.WithFooUID("uid-new"), footest.WithStatus(footest.RefusedStatus()))); !equality.Semantic.DeepEqual(got.GetStatus(), new(footest.RefusedStatus())) {
		t.Errorf("that of another Foo of the name is %+v", got)
	}
	clock.Step(crdMismatchRetry - 1)
	if !m.WouldRecur(withStatus("a", sent)) {
		t.Error("it is sent early")
	}
	clock.Step(1)
	if m.WouldRecur(withStatus("a", sent)) {
		t.Error("it is never sent again")
	}
}

// TestAMismatchEnds: with the Foo, or when the definition stores what is sent.
func TestAMismatchEnds(t *testing.T) {
	for what, end := range map[string]func(m *CRDMismatch, sent samplev1alpha1.FooStatus){
		"the Foo is gone": func(m *CRDMismatch, _ samplev1alpha1.FooStatus) { m.Delete(footest.KeyOf(footest.Foo("a"))) },
		"it is stored now": func(m *CRDMismatch, sent samplev1alpha1.FooStatus) {
			_ = m.Observe(withStatus("a", sent), withStatus("a", sent))
		},
	} {
		m, _, sent := newMismatch()
		end(m, sent)
		if m.WouldRecur(withStatus("a", sent)) || m.Len() != 0 {
			t.Errorf("%s, and the status would be pruned again", what)
		}
	}
}

// TestWithoutASubresourceNoStatusIsSent: of any Foo, until one is stored.
func TestWithoutASubresourceNoStatusIsSent(t *testing.T) {
	clock := clocktesting.NewFakeClock(footest.Now.Time)
	m, status := &CRDMismatch{Clock: clock}, footest.Settled("b")
	if m.WouldRecur(withStatus("b", status)) {
		t.Error("at first no status is sent")
	}
	if err := m.NoSubresource(); !errors.Is(err, failure.ErrCRDMismatch) || !m.WouldRecur(withStatus("b", status)) {
		t.Errorf("without a subresource (%v) a status is sent", err)
	}
	clock.Step(crdMismatchRetry)
	if m.WouldRecur(withStatus("b", status)) {
		t.Error("no status is ever sent again")
	}
	_ = m.NoSubresource()
	if _ = m.Observe(withStatus("a", status), withStatus("a", status)); m.WouldRecur(withStatus("b", status)) {
		t.Error("a status was stored, and others are not sent")
	}
}

// TestConcurrentStatuses fails with the race detector, or by the map itself.
func TestConcurrentStatuses(t *testing.T) {
	m, _, sent := newMismatch()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			foo := withStatus(fmt.Sprint("foo-", i), sent)
			for range 200 {
				_ = m.Observe(foo, withStatus(foo.Name, samplev1alpha1.FooStatus{}))
				_ = m.WouldRecur(foo)
				_ = m.NoSubresource()
				m.LastSent(foo)
				m.Len()
				m.Delete(footest.KeyOf(foo))
			}
		})
	}
	wg.Wait()
	if m.Len() != 1 {
		t.Errorf("%d statuses are remembered, not that of Foo a alone", m.Len())
	}
}
