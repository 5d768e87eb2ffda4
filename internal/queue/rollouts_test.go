// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestRolloutsOfOneNamespaceLeaveRoomForOthers(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	r := &Rollouts{Clock: clock, Limit: 10}
	begun := map[string]int{}
	for i := range 1000 {
		for _, namespace := range []string{"a", "b", "c"}[:1+min(2, i/100)] {
			if foo := (cache.ObjectName{Namespace: namespace, Name: fmt.Sprint(i)}); r.Begin(foo) == 0 {
				begun[namespace]++
			}
		}
	}
	if begun["a"] != 5 || begun["b"] != 5 || begun["c"] != 0 {
		t.Errorf("begun by namespace: %v", begun)
	}
	c := cache.ObjectName{Namespace: "c", Name: "first"}
	if wait := r.Begin(c); wait < 10*time.Second || wait > time.Minute {
		t.Errorf("with 2,700 that wait, one asks again after %v", wait)
	}
	r.End(cache.ObjectName{Namespace: "a", Name: "0"})
	if wait := r.Begin(c); wait != 0 {
		t.Errorf("a free place is not given: %v", wait)
	}
	clock.Step(rolloutTimeout)
	if wait := r.Begin(cache.ObjectName{Namespace: "c", Name: "second"}); wait != 0 {
		t.Errorf("rollouts count for ever: %v", wait)
	}
}
