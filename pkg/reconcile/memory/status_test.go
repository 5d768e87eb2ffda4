// SPDX-License-Identifier: Apache-2.0

// Tests of which statuses are progress, how long they wait, which can't be stored, and which
// transitions have an Event.

package memory

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

func TestWhichStatusesMayWait(t *testing.T) {
	type change = func(*samplev1alpha1.FooStatus)
	same := func(*samplev1alpha1.FooStatus) {}
	pods := func(s *samplev1alpha1.FooStatus) { s.Replicas, s.AvailableReplicas = 7, 7 }
	words := func(s *samplev1alpha1.FooStatus) { s.Conditions[0].Message = "else" }
	reason := func(reason string) change {
		return func(s *samplev1alpha1.FooStatus) { s.Conditions[0].Reason = reason }
	}
	has := func(conditionType, reason, message string) change {
		return func(s *samplev1alpha1.FooStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: conditionType, Status: "True", Reason: reason, Message: message})
		}
	}
	both := func(first, second change) change {
		return func(s *samplev1alpha1.FooStatus) { first(s); second(s) }
	}
	none := func(s *samplev1alpha1.FooStatus) { s.Conditions = nil }
	generation := func(s *samplev1alpha1.FooStatus) { s.ObservedGeneration = 2 }
	stalled, pending := has("Stalled", "ChildFailed", "2, not 3"), has("Exposed", "Progressing", "1 of 3")
	rolling, refused := footest.Rolling(1), footest.RefusedStatus()
	for name, row := range map[string]struct {
		status        samplev1alpha1.FooStatus
		before, after change
		want          time.Duration
	}{
		"nothing":                         {rolling, same, same, 0},
		"more Pods and words of progress": {rolling, same, both(pods, words), ThrottleInterval},
		"a newer spec":                    {rolling, same, generation, 0},
		"other Pods":                      {rolling, same, func(s *samplev1alpha1.FooStatus) { s.Selector = "app=else" }, 0},
		"a failure":                       {rolling, same, reason("ChildFailed"), 0},
		"the end of a failure":            {rolling, reason("ChildFailed"), same, 0},
		"words of the same failure":       {rolling, reason("ChildFailed"), both(reason("ChildFailed"), words), 0},
		"the first status":                {rolling, none, same, 0},
		"no condition":                    {rolling, same, none, 0},
		"another condition":               {rolling, same, has("Reachable", "", ""), 0},
		"a child's progress":              {rolling, pending, has("Exposed", "Progressing", "2 of 3"), ThrottleInterval},
		"words of a child's failure":      {rolling, has("Exposed", "Failed", "a"), has("Exposed", "Failed", "b"), 0},
		"a child is ready":                {rolling, pending, has("Exposed", "Available", "3 of 3"), 0},
		"more Pods of a refused child":    {refused, same, pods, ThrottleInterval},
		"also the words":                  {refused, same, both(pods, words), 0},
		"also the generation":             {refused, same, both(pods, generation), 0},
		"words of a stalled Foo":          {refused, stalled, has("Stalled", "ChildFailed", "3, not 2"), MessageInterval},
		"another reason of a stalled Foo": {refused, stalled, has("Stalled", "ChildConflict", "3, not 2"), 0},
		"no longer stalled":               {refused, stalled, same, 0},
		"stalled is not true any more": {refused, stalled, func(s *samplev1alpha1.FooStatus) {
			stalled(s)
			s.Conditions[1].Status = "False"
		}, 0},
	} {
		with := func(change change) *samplev1alpha1.Foo {
			foo := withStatus("a", *row.status.DeepCopy())
			change(&foo.Status)
			return foo
		}
		if wait := MayWait(with(row.before), with(row.after), true); wait != row.want {
			t.Errorf("%s: the status waits %v, not %v", name, wait, row.want)
		}
	}
	incomplete := withStatus("a", rolling)
	words(&incomplete.Status)
	if MayWait(withStatus("a", footest.Rolling(1)), incomplete, false) > 0 {
		t.Error("after a sync that was not complete, more than the number of Pods may wait")
	}
}

// Progress waits from the time it is first observed, and each time for the whole interval:
// since the last progress, or another status, was written.
func TestAProgressWaitsFromWhenItWasSeen(t *testing.T) {
	var known Owner
	old, now := withStatus("a", footest.Rolling(0)), time.Now()
	for i, row := range []struct {
		after  time.Duration
		status samplev1alpha1.FooStatus
		want   time.Duration
	}{
		{0, footest.Rolling(1), ThrottleInterval},
		{ThrottleInterval - 1, footest.Rolling(2), 1},
		{1, footest.Rolling(2), 0},
		{0, footest.Rolling(1), ThrottleInterval},
		{1, footest.Settled("a"), 0},
		{0, footest.Rolling(1), ThrottleInterval},
	} {
		now = now.Add(row.after)
		footest.ExpectEqual(t, fmt.Sprint("how long status ", i, " waits"), row.want, known.Postpone(MayWait(old, withStatus("a", row.status), true), now))
	}
}

// Of several writes from one version of a Foo, at most one is stored. If that write has its
// Event, another whose response was lost has none.
func TestOneTransitionHasOneEvent(t *testing.T) {
	before, after := footest.Foo("a"), footest.Foo("a", footest.WithStatus(footest.Settled("a")), func(foo *samplev1alpha1.Foo) { foo.ResourceVersion = "11" })
	ready := footest.ReadyOf(after.Status)
	other := ready
	other.LastTransitionTime = metav1.NewTime(ready.LastTransitionTime.Add(2 * time.Second))
	for name, row := range map[string]struct {
		writes func(*Transition)
		want   bool
	}{
		"the response is lost":               {func(t *Transition) { t.Unknown(before, ready) }, true},
		"one is recorded, then one is lost":  {func(t *Transition) { t.Stored(before); t.Unknown(before, ready) }, false},
		"one is lost, then one is recorded":  {func(t *Transition) { t.Unknown(before, ready); t.Stored(before) }, false},
		"two are lost":                       {func(t *Transition) { t.Unknown(before, ready); t.Unknown(before, other) }, true},
		"two are lost, the second is stored": {func(t *Transition) { t.Unknown(before, other); t.Unknown(before, ready) }, true},
		"one of an earlier version is lost": {func(t *Transition) {
			t.Unknown(footest.Foo("a", func(foo *samplev1alpha1.Foo) { foo.ResourceVersion = "9" }), other)
			t.Unknown(before, ready)
		}, true},
		"another controller wrote the same": {func(t *Transition) { t.Unknown(before, other) }, false},
		"one of another reason is lost":     {func(t *Transition) { t.Unknown(before, metav1.Condition{Type: "Ready", Reason: "Other"}) }, false},
		"there was none":                    {func(*Transition) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			known := &Transition{}
			row.writes(known)
			if missed := known.Missed(before); missed != nil {
				t.Errorf("before the cache has the write, %v counts as missed", missed)
			}
			if missed := known.Missed(after); (missed != nil) != row.want {
				t.Errorf("the missed transition is %v", missed)
			}
			known.Observe(before)
			footest.ExpectEqual(t, "a transition that the cache does not show yet is missed later", row.want, known.Missed(after) != nil)
			known.Observe(after)
			if known.Missed(after) != nil || !known.IsZero() {
				t.Error("the transition is remembered forever")
			}
		})
	}
}

func withStatus(name string, status samplev1alpha1.FooStatus) *samplev1alpha1.Foo {
	return footest.Foo(name, footest.WithStatus(status))
}

// newMismatch returns the memory after a status of Foo "a" was pruned.
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
	expect("the status of a Foo without memory", false, nil, settled)
	clock.Step(crdMismatchRetry - 1)
	expect("the same, at the last moment,", true, pruned, settled)
	clock.Step(1)
	expect("one that is sent to see", false, pruned, settled)
}

// Others may add to a status, but what was sent has to be stored.
func TestWhichStatusesAreStored(t *testing.T) {
	sent := footest.Settled("a")
	sent.Conditions = append(sent.Conditions, metav1.Condition{Type: "Exposed", Status: "True", Reason: "Available", Message: "has an address"})
	for name, row := range map[string]struct {
		change func(*samplev1alpha1.FooStatus)
		want   bool
	}{
		"as sent":          {func(*samplev1alpha1.FooStatus) {}, true},
		"with other times": {func(s *samplev1alpha1.FooStatus) { s.Conditions[0].LastTransitionTime = footest.Now }, true},
		"with another condition": {func(s *samplev1alpha1.FooStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: "Audited"})
		}, true},
		"in another order":       {func(s *samplev1alpha1.FooStatus) { slices.Reverse(s.Conditions) }, true},
		"with a field of others": {func(s *samplev1alpha1.FooStatus) { s.Conditions[1].ObservedGeneration = 7 }, true},
		"without a condition":    {func(s *samplev1alpha1.FooStatus) { s.Conditions = s.Conditions[:1] }, false},
		"without a text":         {func(s *samplev1alpha1.FooStatus) { s.Conditions[1].Message = "" }, false},
		"with another text":      {func(s *samplev1alpha1.FooStatus) { s.Conditions[0].Message = "else" }, false},
		"with another number":    {func(s *samplev1alpha1.FooStatus) { s.AvailableReplicas = 9 }, false},
		"without a field":        {func(s *samplev1alpha1.FooStatus) { s.ObservedGeneration = 0 }, false},
		"without anything":       {func(s *samplev1alpha1.FooStatus) { *s = samplev1alpha1.FooStatus{} }, false},
	} {
		stored := sent.DeepCopy()
		row.change(stored)
		m := &CRDMismatch{Clock: clocktesting.NewFakeClock(footest.Now.Time)}
		if pruned, err := m.Observe(withStatus("a", sent), withStatus("a", *stored)); (pruned == nil) != row.want || (err == nil) != row.want {
			t.Errorf("a status %s counts as stored: %v, %v", name, pruned == nil, err)
		}
	}
}

// A mismatch is over once a field is stored that was not, so that the next one is reported.
func TestEachMismatchOfTheDefinitionIsReportedOnce(t *testing.T) {
	settled, counted := footest.Settled("a"), samplev1alpha1.FooStatus{ObservedGeneration: 1}
	stored := func(status samplev1alpha1.FooStatus) func(*CRDMismatch) error {
		return func(m *CRDMismatch) error {
			_, err := m.Observe(withStatus("a", status), withStatus("a", status))
			return err
		}
	}
	prunes := func(m *CRDMismatch) error {
		_, err := m.Observe(withStatus("a", settled), withStatus("a", counted))
		return err
	}
	for name, row := range map[string]struct {
		then     func(*CRDMismatch) error
		reported bool
	}{
		"pruned again": {prunes, false}, "without the field": {stored(counted), false}, "stored": {stored(settled), true},
		"no subresource": {(*CRDMismatch).NoSubresource, true},
	} {
		m := &CRDMismatch{Clock: clocktesting.NewFakeClock(footest.Now.Time)}
		footest.ExpectEqual(t, name+": the first is reported", true, prunes(m) != nil)
		_ = row.then(m)
		footest.ExpectEqual(t, name+": the next is reported", row.reported, prunes(m) != nil)
	}
}

// TestWithoutASubresourceNoStatusIsSent for any Foo, until a status is stored.
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
	expect("forever", false)
	_ = m.NoSubresource()
	_, _ = m.Observe(foo, foo)
	expect("when another was stored", false)
}
