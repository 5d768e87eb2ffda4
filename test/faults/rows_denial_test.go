// SPDX-License-Identifier: Apache-2.0
// Row G12: an admission webhook denies a write with a code or a reason of its own.

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

// soon bounds how long a Foo may take to report what somebody has to know. A denial that
// looks like a lost race is reported after the tenth, some three seconds later.
const soon = 15 * time.Second

// denial is a write that an admission webhook denies until it is asked to stop.
type denial struct {
	name   string
	fault  proxy.Fault
	denies func(*proxy.Call) bool
	// foo must report reason, in words that contain said.
	foo, reason, said string
	act               func(ctx context.Context, tr *trial) error
}

// denied are G12. The webhook chooses the code of its answer, and may choose one that
// the API server itself answers to a client that lost a race.
func denied(writes writeCounts) []trialCase {
	creates := func(call *proxy.Call) bool { return call.Method == http.MethodPost && call.Resource == "deployments" }
	deletes := func(call *proxy.Call) bool { return call.Method == http.MethodDelete && call.Resource == "deployments" }
	create := func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "b", "b", 1) }
	drift := func(ctx context.Context, tr *trial) error {
		return tr.patchDeployment(ctx, "one", `{"spec":{"replicas":5}}`)
	}
	const failed, outage = samplev1alpha1.ReasonDeploymentFailed, samplev1alpha1.ReasonProgressing
	all := []denial{
		{"a create, 409", proxy.Denied(http.StatusConflict), creates, "b", failed, proxy.DenialText, create},
		{"an update, 404", proxy.Denied(http.StatusNotFound), isUpdateAttempt, "a", failed, proxy.DenialText, drift},
		{"a create, reason Conflict", proxy.Conflict, creates, "b", outage, "could not be created yet", create},
		{"an update, reason Conflict", proxy.Conflict, isUpdateAttempt, "a", outage, "could not be updated yet", drift},
	}
	if writes["rename"] > 0 {
		all = append(all, denial{"a delete, 409", proxy.Denied(http.StatusConflict), deletes, "a", failed, proxy.DenialText,
			func(ctx context.Context, tr *trial) error { return tr.renameDeployment(ctx, "a", "two") }})
	}
	var cases []trialCase
	for _, d := range all {
		cases = append(cases, trialCase{d.name, d.run})
	}
	return cases
}

func (d *denial) run(ctx context.Context, tr *trial) error {
	r, err := tr.start()
	if err != nil {
		return err
	}
	if err := errors.Join(tr.createFoo(ctx, "a", "one", 1), tr.settled(ctx)); err != nil {
		return err
	}
	since := time.Now()
	end := r.proxy.Use(func(call *proxy.Call) proxy.Fault {
		if d.denies(call) {
			return d.fault
		}
		return nil
	})
	tr.refused[d.foo] = d.reason
	if err := errors.Join(d.act(ctx, tr), tr.awaitReported(ctx, d.foo, d.said), tr.stableAndQuiet(ctx)); err != nil {
		return fmt.Errorf("while the webhook denies it: %w", err)
	}
	if attempts := tr.deploymentWrites(since); attempts > maxAttempts {
		return fmt.Errorf("while the webhook denies it: %d writes to Deployments in %v", attempts, time.Since(since).Round(time.Second))
	}
	delete(tr.refused, d.foo)
	end()
	return tr.stableAndQuiet(ctx)
}

// awaitReported waits until a Foo is as it should be and its condition contains some
// words, whatever the state of others.
func (tr *trial) awaitReported(ctx context.Context, foo string, words ...string) error {
	if !tr.subject.conditions {
		return nil
	}
	return testcluster.Await(ctx, soon, "Foo "+foo+" reports it", func(ctx context.Context) error {
		found, err := tr.foosClient().Get(ctx, foo, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return errors.Join(tr.checkReady(found, metav1.ConditionFalse, tr.refused[foo]), tr.checkMessage(ctx, foo, words...))
	})
}
