// SPDX-License-Identifier: Apache-2.0

// Tests of faults that meet: their effects add up.

package simulation

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"example.com/sample-controller/test/footest"
)

func TestALaterHoldDoesNotEndAnEarlierOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &connection{heldUntil: map[string]time.Time{}}
		c.hold("foos", longDelay)
		c.hold("foos", shortDelay)
		if held := c.held("foos"); held != longDelay {
			t.Errorf("the watch is held for %s, want %s", held, longDelay)
		}
	})
}

func TestAdmissionsAreInForceTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t.Name(), footest.FooOwner, once(nil), noFault)
		defer c.end()
		refuse := func() error { return apierrors.NewTooManyRequests("", 1) }
		now := time.Now()
		c.admissions = []admission{{until: now.Add(2 * time.Second)}, {until: now.Add(time.Second), refuse: refuse}}
		for _, want := range []struct{ refuses, mutates bool }{{true, true}, {false, true}, {false, false}} {
			if _, err := c.admit(web.ForeignNamed("web")); (err != nil) != want.refuses || c.mutatesWrites() != want.mutates {
				t.Errorf("after %s the error is %v, and whether writes are mutated is %v", time.Since(now), err, c.mutatesWrites())
			}
			advance(time.Second)
		}
	})
}

// A watch that is resumed after the one that dropped an event has later events only.
func TestADroppedEventIsListedAlthoughItsWatchEnds(t *testing.T) {
	var expired time.Duration
	rewatch := func(ctx context.Context, clients Clients, _ record.EventRecorder) error {
		foos, began := clients.Custom.SamplecontrollerV1alpha1().Foos(namespace), time.Now()
		list, err := foos.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for ctx.Err() == nil && expired == 0 {
			watch, err := foos.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
			if err != nil {
				return err
			}
			for event := range watch.ResultChan() {
				if _, isError := event.Object.(*metav1.Status); isError {
					expired = time.Since(began)
				} else {
					list.ResourceVersion = metaOf(event.Object).GetResourceVersion()
				}
			}
		}
		<-ctx.Done()
		return nil
	}
	inject := func(point injectionPoint) fault {
		name := map[int]string{1: "dropped until a relist", 2: "watch ends after it"}[point.n]
		i := slices.IndexFunc(eventFaults, func(f fault) bool { return f.name == name && strings.HasPrefix(point.verb, eventVerb) })
		if i < 0 {
			return fault{}
		}
		return eventFaults[i]
	}
	w := workload{steps: []step{atOnce(create("a", "web", 1), scale("a", 2), scale("a", 3))}}
	w.run(t, footest.FooOwner, rewatch, inject, func(*cluster) { advance(recoveryTime) })
	if expired < longDelay || expired > longDelay+settleTime+time.Second {
		t.Errorf("the watch ended with 410 Gone after %s", expired)
	}
}
