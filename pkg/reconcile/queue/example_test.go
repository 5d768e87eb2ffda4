// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/pkg/reconcile/queue"
)

func ExampleQueue() {
	q := queue.New("things", clock.RealClock{})
	defer q.ShutDown()
	q.AddLowPriority(cache.NewObjectName("big", "unchanged"))
	for _, name := range []string{"1", "2", "3"} {
		q.Add(cache.NewObjectName("big", name))
	}
	q.Add(cache.NewObjectName("small", "only"))

	for q.Len() > 0 {
		key, _ := q.Get()
		fmt.Println(key)
		q.Done(key)
	}
	// Output:
	// big/1
	// small/only
	// big/2
	// big/3
	// big/unchanged
}

func ExampleBackoff() {
	clock := clocktesting.NewFakeClock(time.Now())
	backoff, key := queue.NewBackoff(clock), cache.NewObjectName("team", "thing")
	overQuota := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "thing", fmt.Errorf("exceeded quota"))

	sync := func(replicas int) (err error) {
		backoff.Begin(key)
		if err = backoff.Try(key, "Pod", replicas); err == nil {
			err = backoff.Fail(key, "Pod", replicas, overQuota) // the API server has refused the write
		}
		return err
	}
	show := func(replicas int) {
		err := sync(replicas)
		fmt.Printf("deferred: %v, ", queue.NextAttempt(err).Deferred)
		fmt.Println("again after", backoff.End(key, err))
	}
	show(3)
	show(3) // an event came: the same write would be refused again
	clock.Step(time.Second)
	show(3)
	show(1) // the spec has changed, and this failure does not lengthen the back-off
	// Output:
	// deferred: false, again after 1s
	// deferred: true, again after 1s
	// deferred: false, again after 2s
	// deferred: false, again after 2s
}
