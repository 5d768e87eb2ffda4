// SPDX-License-Identifier: Apache-2.0

// Tests of how rollouts take turns.

package memory

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/test/footest"
)

func inNamespace(namespace string, foo int) cache.ObjectName {
	return cache.ObjectName{Namespace: namespace, Name: fmt.Sprint(foo)}
}

func TestRolloutsOfOneNamespaceLeaveRoomForOthers(t *testing.T) {
	r := &Rollouts{Clock: clocktesting.NewFakeClock(time.Now()), Limit: 10}
	begun := map[string]int{}
	for i := range 1000 {
		for _, namespace := range []string{"a", "b", "c"}[:1+min(2, i/100)] {
			if r.Begin(inNamespace(namespace, i)) == 0 {
				begun[namespace]++
			}
		}
	}
	footest.ExpectEqual(t, "rollouts by namespace", map[string]int{"a": 5, "b": 5}, begun)
	footest.ExpectEqual(t, "after how long one of 2,690 asks again", 26900*time.Millisecond, r.Begin(inNamespace("c", 500)))
	r.End(inNamespace("a", 0))
	footest.ExpectEqual(t, "the wait for a free place", 0*time.Second, r.Begin(inNamespace("c", 500)))
}

func TestRolloutsThatWait(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	r := &Rollouts{Clock: clock, Limit: 1}
	expect := func(what string, foo int, want time.Duration) {
		t.Helper()
		footest.ExpectEqual(t, "the wait of "+what, want, r.Begin(inNamespace("a", foo)))
	}
	for foo := range 201 {
		r.Begin(inNamespace("a", foo))
		footest.ExpectEqual(t, "the wait without a limit", 0*time.Second, (&Rollouts{Clock: clock}).Begin(inNamespace("a", foo)))
	}
	expect("one of 200", 1, 2*time.Second)
	expect("one that rolls out", 0, 0)
	r.End(inNamespace("a", 0))
	expect("one that has its turn", 1, 0)
	expect("one of 199", 2, 1990*time.Millisecond)
	for foo := range 101 {
		r.End(inNamespace("a", 100+foo))
	}
	expect("one of 98", 2, time.Second)
	clock.Step(rolloutTimeout - 1)
	expect("one while the first counts", 2, time.Second)
	clock.Step(1)
	expect("one after the timeout", 2, 0)
}
