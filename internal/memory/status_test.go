// SPDX-License-Identifier: Apache-2.0

// Tests of which statuses are progress, how long they wait, and which transitions have an
// Event.

package memory

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestIsProgressAlone(t *testing.T) {
	with := func(change func(*samplev1alpha1.FooStatus)) samplev1alpha1.FooStatus {
		status := footest.Rolling(1)
		change(&status)
		return status
	}
	same := func(*samplev1alpha1.FooStatus) {}
	reason := func(reason string) func(*samplev1alpha1.FooStatus) {
		return func(s *samplev1alpha1.FooStatus) { s.Conditions[0].Reason = reason }
	}
	exposed := func(message string) func(*samplev1alpha1.FooStatus) {
		return func(s *samplev1alpha1.FooStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: "Exposed", Reason: "Progressing", Message: message})
		}
	}
	for name, row := range map[string]struct {
		before, after func(*samplev1alpha1.FooStatus)
		want          bool
	}{
		"more Pods":            {same, func(s *samplev1alpha1.FooStatus) { s.Replicas, s.Conditions[0].Message = 2, "1 of 2" }, true},
		"a newer spec":         {same, func(s *samplev1alpha1.FooStatus) { s.ObservedGeneration = 2 }, false},
		"other Pods":           {same, func(s *samplev1alpha1.FooStatus) { s.Selector = "app=else" }, false},
		"a failure":            {same, reason("ChildFailed"), false},
		"the end of a failure": {reason("ChildFailed"), same, false},
		"another failure":      {reason("ChildFailed"), reason("ChildFailed"), false},
		"the first status":     {func(s *samplev1alpha1.FooStatus) { s.Conditions = nil }, same, false},
		"another condition": {same, func(s *samplev1alpha1.FooStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: "Reachable"})
		}, false},
		"no condition":             {same, func(s *samplev1alpha1.FooStatus) { s.Conditions = nil }, false},
		"that of a child, too":     {exposed("1 of 3"), exposed("2 of 3"), true},
		"that of a child is ready": {exposed("1 of 3"), func(s *samplev1alpha1.FooStatus) { exposed("3 of 3")(s); s.Conditions[1].Reason = "Available" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isProgressAlone(withStatus("a", with(row.before)), withStatus("a", with(row.after))); got != row.want {
				t.Errorf("isProgressAlone = %v, not %v", got, row.want)
			}
		})
	}
}

func TestIsCountAlone(t *testing.T) {
	with := func(change func(*samplev1alpha1.FooStatus)) samplev1alpha1.FooStatus {
		status := footest.RefusedStatus()
		change(&status)
		return status
	}
	for name, row := range map[string]struct {
		change func(*samplev1alpha1.FooStatus)
		want   bool
	}{
		"another number of Pods":           {func(s *samplev1alpha1.FooStatus) { s.Replicas = 7 }, true},
		"another number of available Pods": {func(s *samplev1alpha1.FooStatus) { s.AvailableReplicas = 7 }, true},
		"nothing":                          {func(*samplev1alpha1.FooStatus) {}, false},
		"also the message":                 {func(s *samplev1alpha1.FooStatus) { s.Replicas, s.Conditions[0].Message = 7, "else" }, false},
		"also the generation":              {func(s *samplev1alpha1.FooStatus) { s.Replicas, s.ObservedGeneration = 7, 2 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isCountAlone(withStatus("a", footest.RefusedStatus()), withStatus("a", with(row.change))); got != row.want {
				t.Errorf("isCountAlone = %v, not %v", got, row.want)
			}
		})
	}
}

// Two controllers that fight about a child would replace each other's words without end.
func TestTheWordsOfAStalledFooMayWait(t *testing.T) {
	status := func(stalled metav1.ConditionStatus, reason, message string) samplev1alpha1.FooStatus {
		status := footest.RefusedStatus()
		status.Conditions[0].Reason, status.Conditions[0].Message = reason, message
		status.Conditions = append(status.Conditions, metav1.Condition{Type: samplev1alpha1.ConditionStalled, Status: stalled, Reason: reason, Message: message})
		return status
	}
	before := status(metav1.ConditionTrue, "ChildFailed", "replicas is 2, not 3")
	for name, row := range map[string]struct {
		after samplev1alpha1.FooStatus
		want  time.Duration
	}{
		"other words":    {status(metav1.ConditionTrue, "ChildFailed", "replicas is 3, not 2"), MessageInterval},
		"another reason": {status(metav1.ConditionTrue, "ChildConflict", "replicas is 3, not 2"), 0},
		"no more":        {footest.RefusedStatus(), 0},
		"not yet":        {status(metav1.ConditionFalse, "ChildFailed", "replicas is 3, not 2"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var p Progress
			if wait := p.Wait(withStatus("a", before), withStatus("a", row.after), true, time.Now()); wait != row.want {
				t.Errorf("the status waits %v, not %v", wait, row.want)
			}
		})
	}
}

func TestEachProgressWaitsTheWholeTime(t *testing.T) {
	for name, ends := range map[string]func(p *Progress, now *time.Time, old *samplev1alpha1.Foo){
		"since the last was written": func(p *Progress, now *time.Time, old *samplev1alpha1.Foo) {
			*now = now.Add(ThrottleInterval)
			p.Wait(old, withStatus("a", footest.Rolling(2)), true, *now)
		},
		"since something else was written": func(p *Progress, now *time.Time, old *samplev1alpha1.Foo) {
			*now = now.Add(1)
			p.Wait(old, withStatus("a", footest.Settled("a")), true, *now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			p, old := &Progress{}, footest.Foo("a", footest.WithStatus(footest.Rolling(0)))
			p.Wait(old, withStatus("a", footest.Rolling(1)), true, now)
			ends(p, &now, old)
			if left := p.Wait(old, withStatus("a", footest.Rolling(1)), true, now); left != ThrottleInterval {
				t.Errorf("the status waits %v", left)
			}
		})
	}
}

// Of several writes from one version of a Foo, at most one is stored. If that one has its
// Event, another one whose response was lost has none.
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
			if known.Missed(after) != nil || !known.IsZero() {
				t.Error("the transition is remembered for ever")
			}
		})
	}
}

// TestAProgressWaitsFromWhenItWasSeen fails if each sync begins the wait again.
func TestAProgressWaitsFromWhenItWasSeen(t *testing.T) {
	now := time.Now()
	p, old := &Progress{}, footest.Foo("a", footest.WithStatus(footest.Rolling(0)))
	for range 4 {
		if left := p.Wait(old, withStatus("a", footest.Rolling(1)), true, now); left == 0 {
			t.Fatal("it is written early")
		}
		now = now.Add(ThrottleInterval / 4)
	}
	if left := p.Wait(old, withStatus("a", footest.Rolling(1)), true, now); left != 0 {
		t.Errorf("after %v the status waits another %v", ThrottleInterval, left)
	}
}
