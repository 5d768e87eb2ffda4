/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
)

// comeBack is the Retry-After, in seconds, that two Foos get. client-go alone
// would wait for it within the call, ten times: longer than a trial's patience.
const comeBack = 10

// throttled are G2: the API server has no time for two Foos, and says when to
// come back. Whoever waits for that in a worker holds up all others. The two get
// no other answer until the others are ready, so the order alone decides.
func throttled(counted) []trialCase {
	throttle := func(name string, fault proxy.Fault) trialCase {
		return trialCase{name, func(ctx context.Context, tr *trial) error {
			r, err := tr.start(tr.noDeadline()...)
			if err != nil {
				return err
			}
			end := r.proxy.Use(func(call *proxy.Call) proxy.Fault {
				if call.IsWork() && (asks(call, "slow-1") || asks(call, "slow-2")) {
					return fault
				}
				return nil
			})
			if err := errors.Join(tr.createFoo(ctx, "slow-1", "slow-1", 1), tr.createFoo(ctx, "slow-2", "slow-2", 1),
				tr.awaitAsked(ctx, r, "slow-1", 1), tr.awaitAsked(ctx, r, "slow-2", 1)); err != nil {
				return err
			}
			var others []string
			for i := range 5 {
				others = append(others, fmt.Sprintf("quick-%d", i))
				err = errors.Join(err, tr.createFoo(ctx, others[i], others[i], 1))
			}
			if err := errors.Join(err, tr.awaitRight(ctx, others...)); err != nil {
				return fmt.Errorf("two Foos are to come back in %d s, and others wait: %w", comeBack, err)
			}
			if err := errors.Join(tr.awaitAsked(ctx, r, "slow-1", 2), tr.awaitAsked(ctx, r, "slow-2", 2)); err != nil {
				return err
			}
			end()
			return errors.Join(tr.stableAndQuiet(ctx), r.obeys("slow-1"), r.obeys("slow-2"))
		}}
	}
	return []trialCase{
		throttle("by a Status", proxy.ComeBack(comeBack)),
		throttle("by a header alone", proxy.Throttle(comeBack)),
	}
}

// noDeadline is the flag that keeps a call's deadline from ending a wait within
// it, where there is one.
func (tr *trial) noDeadline() []string {
	if tr.subject == run.upstream {
		return nil
	}
	return []string{"-request-timeout=10m"}
}

// asks tells whether a write is about a Foo, or the Deployment of its name.
func asks(call *proxy.Call, foo string) bool {
	return call.IsWork() && (call.Name == foo || call.Name == "" && bytes.Contains(call.Body, []byte(foo)))
}

// awaitAsked waits until a Foo's Deployment was to be made so many times.
func (tr *trial) awaitAsked(ctx context.Context, r *replica, foo string, times int) error {
	return tr.await(ctx, fmt.Sprintf("Deployment %s was to be made %d times", foo, times), func(context.Context) error {
		made := 0
		for _, call := range r.proxy.Calls() {
			if call.Method == http.MethodPost && call.Resource == "deployments" && asks(&call, foo) && call.Code != 0 {
				made++
			}
		}
		if made < times {
			return fmt.Errorf("it was to be %d times", made)
		}
		return nil
	})
}

// obeys returns an error if what a Foo needs was asked for again before the time.
func (r *replica) obeys(foo string) error {
	told := map[string]time.Time{}
	for _, call := range r.proxy.Calls() {
		if !asks(&call, foo) {
			continue
		}
		what := call.Short()
		if before, ok := told[what]; ok && call.Began.Sub(before) < comeBack*time.Second {
			return fmt.Errorf("told to come back in %d s, it did in %v: %s", comeBack, call.Began.Sub(before).Round(time.Millisecond), what)
		}
		delete(told, what)
		if call.Code == http.StatusTooManyRequests {
			told[what] = call.Began
		}
	}
	return nil
}

// awaitRight waits until some Foos are as they should be, whatever others are.
func (tr *trial) awaitRight(ctx context.Context, foos ...string) error {
	return tr.await(ctx, "they are right", func(ctx context.Context) error {
		now, err := tr.look(ctx)
		if err != nil {
			return err
		}
		right := map[string]bool{}
		for i := range now.foos {
			if err = now.wrongFoo(tr, &now.foos[i]); err == nil {
				right[now.foos[i].Name] = true
			}
		}
		for _, foo := range foos {
			if !right[foo] {
				return fmt.Errorf("Foo %s is not", foo)
			}
		}
		return nil
	})
}

const (
	// flaps is how often the status of a Deployment changes under a refused update.
	flaps = 40
	// fewRefusals is how often the update may be tried meanwhile.
	fewRefusals = 10
)

// flapping is G4: an update is refused, and the Deployment's status changes all
// the time, which says nothing about what was refused.
func flapping(counted) []trialCase {
	return []trialCase{{"a condition", func(ctx context.Context, tr *trial) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
			return err
		}
		defer tr.withdraw(ctx) //nolint:errcheck // after a failure, which is what is told
		if err := errors.Join(tr.deny(ctx, "a", admissionregistrationv1.Update, fmt.Sprintf("'%s'", forbiddenWord)),
			tr.awaitDenied(ctx, "a", admissionregistrationv1.Update)); err != nil {
			return err
		}
		tr.refused["a"] = samplev1alpha1.ReasonDeploymentFailed
		if err := errors.Join(tr.scaleFoo(ctx, "a", 3), tr.stableAndQuiet(ctx), tr.says(ctx, "a", forbiddenWord)); err != nil {
			return fmt.Errorf("while it is refused: %w", err)
		}
		since := time.Now()
		if err := errors.Join(tr.flap(ctx, r, "a"), tr.stableAndQuiet(ctx)); err != nil {
			return err
		}
		if attempts := tr.deploymentWrites(since); attempts > fewRefusals {
			return fmt.Errorf("an update that is refused was tried %d times while the Deployment's status changed %d times", attempts, flaps)
		}
		delete(tr.refused, "a")
		return errors.Join(tr.withdraw(ctx), tr.scaleFoo(ctx, "a", 2), tr.stableAndQuiet(ctx)) // the new wish ends the back-off
	}}}
}

// flap changes a condition in a Deployment's status again and again, each time
// when the controller has been told of the change before.
func (tr *trial) flap(ctx context.Context, r *replica, deployment string) error {
	var told atomic.Int32
	r.proxy.EditEvents(func(event proxy.Event) int {
		if event.Resource == "deployments" && event.Name == deployment {
			told.Add(1)
		}
		return 1
	})
	defer r.proxy.EditEvents(nil)
	for i := range flaps {
		before := told.Load()
		status := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[i%2]
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"faults.example.com/Flap","status":%q,"reason":"Flap","message":"%d"}]}}`, status, i)
		_, err := tr.deployments().Patch(ctx, deployment, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"}, "status")
		if err != nil {
			return err
		}
		err = tr.await(ctx, "the controller is told of a change", func(context.Context) error {
			if told.Load() == before {
				return errors.New("it is not")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pausedRollout is G5: somebody has paused a Deployment, and there is something
// to roll out.
func pausedRollout(counted) []trialCase {
	return []trialCase{{"by a user", func(ctx context.Context, tr *trial) error {
		if _, err := tr.start(); err != nil {
			return err
		}
		const another = `{"spec":{"template":{"metadata":{"annotations":{"somebody":"mine"}}}}}`
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 2), tr.settled(ctx), tr.patchDeployment(ctx, "a", `{"spec":{"paused":true}}`), tr.settled(ctx)); err != nil {
			return err
		}
		tr.refused["a"] = samplev1alpha1.ReasonProgressing
		err := errors.Join(tr.patchDeployment(ctx, "a", another),
			// How far a rollout is may be told some seconds later.
			tr.await(ctx, "it is said", func(ctx context.Context) error { return tr.says(ctx, "a", "is paused") }))
		if err := errors.Join(err, tr.stableAndQuiet(ctx), tr.serves(ctx, "a", 2)); err != nil {
			return fmt.Errorf("while it is paused: %w", err)
		}
		delete(tr.refused, "a")
		return errors.Join(tr.patchDeployment(ctx, "a", `{"spec":{"paused":null}}`), tr.stableAndQuiet(ctx))
	}}}
}
