// SPDX-License-Identifier: Apache-2.0

// Rows G1 and G9: writes that fail because a webhook or the API server is down.

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
)

// interruption is what a user does while Deployments can't be written.
type interruption struct {
	name string
	// foo is the Foo that the user changes, and begins is the start of its condition's
	// message.
	foo, begins string
	act         func(ctx context.Context, tr *trial) error
}

// webhookDown is G1: a webhook with failurePolicy Fail does not answer.
func webhookDown(writes writeCounts) []trialCase {
	all := []interruption{
		{"a create", "b", `Deployment "b" could not be created yet: `,
			func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "b", "b", 1) }},
		{"a scale", "a", `Deployment "one" could not be updated yet: `,
			func(ctx context.Context, tr *trial) error { return tr.scaleFoo(ctx, "a", 3) }},
	}
	if writes["rename"] > 0 {
		all = append(all, interruption{"a rename", "a", `Deployment "two" could not be created yet: `,
			func(ctx context.Context, tr *trial) error { return tr.renameDeployment(ctx, "a", "two") }})
	}
	var cases []trialCase
	for _, what := range all {
		cases = append(cases, trialCase{what.name, what.run})
	}
	return cases
}

func (i *interruption) run(ctx context.Context, tr *trial) error {
	tr.timeout = 4 * waitTimeout // the back-off of a failed write grows to 5 minutes
	if _, err := tr.start(); err != nil {
		return err
	}
	if err := errors.Join(tr.createFoo(ctx, "a", "one", 1), tr.settled(ctx)); err != nil {
		return err
	}
	defer tr.withdraw(ctx) //nolint:errcheck // runs after a failure, and the test reports that one
	if err := tr.failClosed(ctx); err != nil {
		return err
	}
	since := time.Now()
	tr.refused[i.foo] = samplev1alpha1.ReasonProgressing
	if err := errors.Join(i.act(ctx, tr), tr.stableAndQuiet(ctx), tr.checkMessageStart(ctx, i.foo, i.begins, "failed calling webhook"), tr.serves(ctx, "one", 1)); err != nil {
		return fmt.Errorf("while the webhook is down: %w", err)
	}
	if attempts := tr.deploymentWrites(since); attempts > maxAttempts {
		return fmt.Errorf("while the webhook is down: %d writes to Deployments in %v", attempts, time.Since(since).Round(time.Second))
	}
	delete(tr.refused, i.foo)
	return errors.Join(tr.withdraw(ctx), tr.stableAndQuiet(ctx))
}

// serves returns an error if a Deployment no longer has the given number of Pods.
func (tr *trial) serves(ctx context.Context, deployment string, replicas int32) error {
	d, err := tr.deployments().Get(ctx, deployment, metav1.GetOptions{})
	if err == nil && (*d.Spec.Replicas != replicas || d.Status.AvailableReplicas != replicas) {
		err = fmt.Errorf("Deployment %s has %d of %d Pods, and had %d", deployment, d.Status.AvailableReplicas, *d.Spec.Replicas, replicas)
	}
	return err
}

// alternations is how many attempts fail, by an outage and a refusal in turn.
const alternations = 5

// outageAndRefusal is G9: the same write fails by an outage and a refusal in turn.
func outageAndRefusal(writeCounts) []trialCase {
	alternating := func(faults ...proxy.Fault) func(context.Context, *trial) error {
		return func(ctx context.Context, tr *trial) error {
			tr.timeout = 4 * waitTimeout // the back-off of a refused write grows to 5 minutes
			r, err := tr.start()
			if err != nil {
				return err
			}
			var attempts atomic.Int32
			end := r.proxy.Use(func(call *proxy.Call) proxy.Fault {
				if call.Method != http.MethodPost || call.Resource != "deployments" {
					return nil
				}
				return faults[int(attempts.Add(1)-1)%len(faults)]
			})
			if err := tr.createFoo(ctx, "a", "a", 1); err != nil {
				return err
			}
			err = tr.await(ctx, fmt.Sprintf("%d attempts", alternations), func(context.Context) error {
				if made := attempts.Load(); made < alternations {
					return fmt.Errorf("there are %d so far", made)
				}
				return nil
			})
			if err := errors.Join(err, r.checkTransitions()); err != nil {
				return err
			}
			end()
			return errors.Join(tr.scaleFoo(ctx, "a", 2), tr.stableAndQuiet(ctx)) // the new spec ends the back-off
		}
	}
	return []trialCase{
		{"a refusal first", alternating(proxy.Forbidden, proxy.Internal)},
		{"an outage first", alternating(proxy.Internal, proxy.Forbidden)},
	}
}

// checkTransitions returns an error if a controller reported more than two changes: that
// a write failed, and then the final reason.
func (r *replica) checkTransitions() error {
	events, reasons := 0, []string{""}
	for _, call := range r.proxy.Calls() {
		switch {
		case !call.IsWrite() || !call.Succeeded():
		case call.Resource == "events":
			events++
		case call.Subresource == "status":
			if now := reasonIn(call.Answer); now != reasons[len(reasons)-1] {
				reasons = append(reasons, now)
			}
		}
	}
	if events > 2 || len(reasons) > 3 {
		return fmt.Errorf("an outage and a refusal in turn caused %d events, and the reasons %v", events, reasons[1:])
	}
	return nil
}

// reasonIn returns the reason of a Foo's condition, or "" if it has none.
func reasonIn(body []byte) string {
	var foo samplev1alpha1.Foo
	if json.Unmarshal(body, &foo) != nil {
		return ""
	}
	if ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}
