// SPDX-License-Identifier: Apache-2.0

// Rows G2, G4 and G5: when a failed write is repeated, and what a paused rollout reports.

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

// retryAfter is the Retry-After, in seconds, that two Foos get. client-go alone would
// wait for it within the call, ten times: longer than the timeout of a trial.
const retryAfter = 10

// throttled are G2: the API server answers writes for two Foos with 429 and Retry-After.
// A controller that waits for that in a worker delays all other Foos. The two get no
// other answer until the others are ready, so the result depends on the order alone.
func throttled(writeCounts) []trialCase {
	throttle := func(name string, fault proxy.Fault) trialCase {
		return trialCase{name, func(ctx context.Context, tr *trial) error {
			r, err := tr.start(tr.longCallTimeout()...)
			if err != nil {
				return err
			}
			end := r.proxy.Use(func(call *proxy.Call) proxy.Fault {
				if call.IsWork() && (isAbout(call, "slow-1") || isAbout(call, "slow-2")) {
					return fault
				}
				return nil
			})
			if err := errors.Join(tr.createFoo(ctx, "slow-1", "slow-1", 1), tr.createFoo(ctx, "slow-2", "slow-2", 1),
				tr.awaitCreateAttempts(ctx, r, "slow-1", 1), tr.awaitCreateAttempts(ctx, r, "slow-2", 1)); err != nil {
				return err
			}
			var quick []string
			for i := range 5 {
				quick = append(quick, fmt.Sprintf("quick-%d", i))
				err = errors.Join(err, tr.createFoo(ctx, quick[i], quick[i], 1))
			}
			if err := errors.Join(err, tr.awaitConverged(ctx, quick...)); err != nil {
				return fmt.Errorf("two Foos have a Retry-After of %d s, and others wait: %w", retryAfter, err)
			}
			if err := errors.Join(tr.awaitCreateAttempts(ctx, r, "slow-1", 2), tr.awaitCreateAttempts(ctx, r, "slow-2", 2)); err != nil {
				return err
			}
			end()
			return errors.Join(tr.stableAndQuiet(ctx), r.checkRetryAfter("slow-1"), r.checkRetryAfter("slow-2"))
		}}
	}
	return []trialCase{
		throttle("by a Status", proxy.RetryAfter(retryAfter)),
		throttle("by a header alone", proxy.RetryAfterText(retryAfter)),
	}
}

// longCallTimeout is the flag that keeps the timeout of a call from ending a wait within
// it, if the subject has it.
func (tr *trial) longCallTimeout() []string {
	if tr.subject == run.upstream {
		return nil
	}
	return []string{"-request-timeout=10m"}
}

// isAbout reports whether a write is to a Foo, or to the Deployment of its name.
func isAbout(call *proxy.Call, foo string) bool {
	return call.IsWork() && (call.Name == foo || call.Name == "" && bytes.Contains(call.Body, []byte(foo)))
}

// awaitCreateAttempts waits until a controller has tried a number of times to create a
// Foo's Deployment.
func (tr *trial) awaitCreateAttempts(ctx context.Context, r *replica, foo string, times int) error {
	return tr.await(ctx, fmt.Sprintf("there were %[2]d attempts to create Deployment %[1]s", foo, times), func(context.Context) error {
		made := 0
		for _, call := range r.proxy.Calls() {
			if call.Method == http.MethodPost && call.Resource == "deployments" && isAbout(&call, foo) && call.Code != 0 {
				made++
			}
		}
		if made < times {
			return fmt.Errorf("there were %d", made)
		}
		return nil
	})
}

// checkRetryAfter returns an error if a request for a Foo was repeated before its
// Retry-After was over.
func (r *replica) checkRetryAfter(foo string) error {
	throttledAt := map[string]time.Time{}
	for _, call := range r.proxy.Calls() {
		if !isAbout(&call, foo) {
			continue
		}
		what := call.Short()
		if before, ok := throttledAt[what]; ok && call.Began.Sub(before) < retryAfter*time.Second {
			return fmt.Errorf("with a Retry-After of %d s, it repeated a request after %v: %s", retryAfter, call.Began.Sub(before).Round(time.Millisecond), what)
		}
		delete(throttledAt, what)
		if call.Code == http.StatusTooManyRequests {
			throttledAt[what] = call.Began
		}
	}
	return nil
}

// awaitConverged waits until some Foos are as they should be, whatever the state of
// others.
func (tr *trial) awaitConverged(ctx context.Context, foos ...string) error {
	return tr.await(ctx, "they have converged", func(ctx context.Context) error {
		now, err := tr.takeSnapshot(ctx)
		if err != nil {
			return err
		}
		right := map[string]bool{}
		for i := range now.foos {
			if err = now.checkFoo(tr, &now.foos[i]); err == nil {
				right[now.foos[i].Name] = true
			}
		}
		for _, foo := range foos {
			if !right[foo] {
				return fmt.Errorf("Foo %s has not", foo)
			}
		}
		return nil
	})
}

const (
	// statusChanges is how often the status of a Deployment changes while an update is
	// refused.
	statusChanges = 40
	// maxRefused bounds the attempts of that update meanwhile.
	maxRefused = 10
)

// flapping is G4: an update is refused while the Deployment's status changes all the
// time. Such a change says nothing about the refusal.
func flapping(writeCounts) []trialCase {
	return []trialCase{{"a condition", func(ctx context.Context, tr *trial) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
			return err
		}
		defer tr.withdraw(ctx) //nolint:errcheck // runs after a failure, and the test reports that one
		if err := errors.Join(tr.deny(ctx, "a", admissionregistrationv1.Update, fmt.Sprintf("'%s'", denialText)),
			tr.awaitDenied(ctx, "a", admissionregistrationv1.Update)); err != nil {
			return err
		}
		tr.refused["a"] = samplev1alpha1.ReasonDeploymentFailed
		if err := errors.Join(tr.scaleFoo(ctx, "a", 3), tr.stableAndQuiet(ctx), tr.checkMessage(ctx, "a", denialText)); err != nil {
			return fmt.Errorf("while it is refused: %w", err)
		}
		since := time.Now()
		if err := errors.Join(tr.flap(ctx, r, "a"), tr.stableAndQuiet(ctx)); err != nil {
			return err
		}
		if attempts := tr.deploymentWrites(since); attempts > maxRefused {
			return fmt.Errorf("a refused update was repeated %d times while the Deployment's status changed %d times", attempts, statusChanges)
		}
		delete(tr.refused, "a")
		return errors.Join(tr.withdraw(ctx), tr.scaleFoo(ctx, "a", 2), tr.stableAndQuiet(ctx)) // the new spec ends the back-off
	}}}
}

// flap changes a condition in a Deployment's status again and again.
func (tr *trial) flap(ctx context.Context, r *replica, deployment string) error {
	return tr.changeEach(ctx, r, deployment, statusChanges, func(i int) error {
		status := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[i%2]
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"faults.example.com/Flap","status":%q,"reason":"Flap","message":"%d"}]}}`, status, i)
		_, err := tr.deployments().Patch(ctx, deployment, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"}, "status")
		return err
	})
}

// changeEach changes a Deployment a number of times, each time after the controller has
// received the last change.
func (tr *trial) changeEach(ctx context.Context, r *replica, deployment string, times int, change func(i int) error) error {
	var delivered atomic.Int32
	r.proxy.EditEvents(func(event proxy.Event) int {
		if event.Resource == "deployments" && event.Name == deployment {
			delivered.Add(1)
		}
		return 1
	})
	defer r.proxy.EditEvents(nil)
	for i := range times {
		before := delivered.Load()
		if err := change(i); err != nil {
			return err
		}
		err := tr.await(ctx, "the controller receives the change", func(context.Context) error {
			if delivered.Load() == before {
				return errors.New("it has not")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pausedRollout is G5: a user paused a Deployment, and its template changes.
func pausedRollout(writeCounts) []trialCase {
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
			// The status may report the progress of a rollout some seconds late.
			tr.await(ctx, "the condition says so", func(ctx context.Context) error { return tr.checkMessage(ctx, "a", "is paused") }))
		if err := errors.Join(err, tr.stableAndQuiet(ctx), tr.serves(ctx, "a", 2)); err != nil {
			return fmt.Errorf("while it is paused: %w", err)
		}
		delete(tr.refused, "a")
		return errors.Join(tr.patchDeployment(ctx, "a", `{"spec":{"paused":null}}`), tr.stableAndQuiet(ctx))
	}}}
}
