// SPDX-License-Identifier: Apache-2.0

// Rows about admission: policies and webhooks that refuse a Deployment, deny it with a
// code of their own, or change it.

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

// maxAttempts is more than the attempts that an exponential back-off makes in some
// minutes if it starts with milliseconds.
const maxAttempts = 25

// denialText begins the policy's message.
const denialText = "Denied by the test"

// longMessage returns a CEL expression for a message of nearly 5 KiB, the limit for a
// policy's message. It has characters of more than one byte and differs for each
// Deployment.
func longMessage() string {
	return fmt.Sprintf("'%s: ' + string(object.metadata.uid) + ': ' + '%s'", denialText, strings.Repeat("no way – ", 445))
}

// refusedByPolicy is D12: a policy refuses a write that one of the Foos needs.
func refusedByPolicy(writeCounts) []trialCase {
	return []trialCase{
		{"a create", refusedWrite(admissionregistrationv1.Create, func(ctx context.Context, tr *trial) error {
			return tr.createFoo(ctx, "b", "b", 1)
		})},
		{"an update", refusedWrite(admissionregistrationv1.Update, func(ctx context.Context, tr *trial) error {
			return tr.scaleFoo(ctx, "b", 3)
		})},
	}
}

func refusedWrite(operation admissionregistrationv1.OperationType, ask func(context.Context, *trial) error) func(context.Context, *trial) error {
	return func(ctx context.Context, tr *trial) error {
		tr.timeout = 4 * waitTimeout // the back-off of a refused write grows to 5 minutes
		if _, err := tr.start(); err != nil {
			return err
		}
		err := tr.createFoo(ctx, "a", "a", 1)
		if operation == admissionregistrationv1.Update {
			err = errors.Join(err, tr.createFoo(ctx, "b", "b", 1))
		}
		if err := errors.Join(err, tr.settled(ctx)); err != nil {
			return err
		}
		defer tr.withdraw(ctx) //nolint:errcheck // runs after a failure, and the test reports that one
		if err := tr.deny(ctx, "b", operation, longMessage()); err != nil {
			return err
		}
		if err := tr.awaitDenied(ctx, "b", operation); err != nil {
			return err
		}
		since := time.Now()
		tr.refused["b"] = samplev1alpha1.ReasonDeploymentFailed
		if err := errors.Join(ask(ctx, tr), tr.stableAndQuiet(ctx), tr.checkMessage(ctx, "b", denialText)); err != nil {
			return fmt.Errorf("while it is refused: %w", err)
		}
		if err := errors.Join(tr.scaleFoo(ctx, "a", 2), tr.createFoo(ctx, "c", "c", 1), tr.stableAndQuiet(ctx)); err != nil {
			return fmt.Errorf("while the write for another Foo is refused: %w", err)
		}
		if attempts := tr.deploymentWrites(since); attempts > maxAttempts {
			return fmt.Errorf("while it is refused: %d writes to Deployments in %v", attempts, time.Since(since).Round(time.Second))
		}
		delete(tr.refused, "b")
		return errors.Join(tr.withdraw(ctx), tr.stableAndQuiet(ctx))
	}
}

// awaitDenied waits until the policy of deny is in force.
func (tr *trial) awaitDenied(ctx context.Context, deployment string, operation admissionregistrationv1.OperationType) error {
	dryRun := []string{metav1.DryRunAll}
	return tr.await(ctx, "the policy is in force", func(ctx context.Context) error {
		var err error
		if operation == admissionregistrationv1.Create {
			_, err = tr.deployments().Create(ctx, newDeployment(deployment), metav1.CreateOptions{DryRun: dryRun})
		} else {
			_, err = tr.deployments().Patch(ctx, deployment, "application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{DryRun: dryRun})
		}
		if err == nil || !strings.Contains(err.Error(), denialText) {
			return errors.Join(errors.New("it refuses no write yet"), err)
		}
		return nil
	})
}

// maxMessage bounds the message of a condition in bytes: kubectl prints it on one line.
const maxMessage = 1024

// checkMessage returns an error if the message of a Foo's condition lacks some words, or
// is too long.
func (tr *trial) checkMessage(ctx context.Context, foo string, words ...string) error {
	return tr.checkMessageStart(ctx, foo, "", words...)
}

// checkMessageStart is checkMessage for a message that must start with some words.
func (tr *trial) checkMessageStart(ctx context.Context, foo, beginning string, words ...string) error {
	if !tr.subject.conditions {
		return nil
	}
	found, err := tr.foosClient().Get(ctx, foo, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ready := meta.FindStatusCondition(found.Status.Conditions, samplev1alpha1.ConditionReady)
	if ready == nil || !strings.HasPrefix(ready.Message, beginning) {
		return fmt.Errorf("the condition of Foo %s does not start with %q: %+v", foo, beginning, ready)
	}
	if len(ready.Message) > maxMessage {
		return fmt.Errorf("the condition of Foo %s has a message of %d bytes", foo, len(ready.Message))
	}
	for _, word := range words {
		if !strings.Contains(ready.Message, word) {
			return fmt.Errorf("the condition of Foo %s does not contain %q: %+v", foo, word, ready)
		}
	}
	return nil
}

// deploymentWrites counts the requests to write Deployments.
func (tr *trial) deploymentWrites(since time.Time) int {
	writes := 0
	for _, call := range tr.calls() {
		if call.Began.After(since) && call.IsWrite() && call.Resource == "deployments" {
			writes++
		}
	}
	return writes
}

// mutation is a policy that changes each Deployment that is written.
type mutation struct {
	name string
	// path is the field that the policy changes, and value, in CEL, its new value.
	path, value string
	inForce     func(*appsv1.Deployment) bool
	// capped is the number of replicas that the policy leaves, or 0 if it leaves them
	// all.
	capped int32
	// differs returns what the condition must say of a Foo with so many replicas.
	differs func(replicas int32) string
	start   func(tr *trial, flags ...string) (*replica, error)
	// change changes the Foo or its Deployment after the policy is deleted.
	change func(ctx context.Context, tr *trial) error
}

func changeFoo(ctx context.Context, tr *trial) error { return tr.scaleFoo(ctx, "a", 4) }

func changeDeployment(ctx context.Context, tr *trial) error {
	return tr.patchDeployment(ctx, "a", `{"spec":{"replicas":1}}`)
}

// capping leaves two replicas.
func capping() mutation {
	return mutation{
		path: "/spec/replicas", value: "2", capped: 2, start: (*trial).start,
		inForce: func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 },
		differs: func(replicas int32) string { return fmt.Sprintf("spec.replicas is 2, not %d", replicas) },
	}
}

// mutatedByPolicy is G3, and D12: a policy changes each Deployment that is written. The
// condition says so, and the controller does not write again at a resync.
func mutatedByPolicy(writeCounts) []trialCase {
	capping := capping()
	const mirrored = "mirror.example.com/nginx:latest"
	// The shipped policy forbids this image to the account that it applies to.
	mirror := mutation{
		name: "the image", path: "/spec/template/spec/containers/0/image", value: fmt.Sprintf("%q", mirrored), start: (*trial).startExempt,
		inForce: func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == mirrored },
		differs: func(int32) string { return mirrored },
		change:  changeFoo,
	}
	later, soon := capping, capping
	later.name, later.change = "the replicas, and then the Foo is changed", changeFoo
	soon.name, soon.change = "the replicas, and then the Deployment is changed", changeDeployment
	var cases []trialCase
	for _, o := range []mutation{later, soon, mirror} {
		cases = append(cases, trialCase{o.name, o.run})
	}
	return cases
}

func (o *mutation) run(ctx context.Context, tr *trial) error {
	flags, resyncs := tr.resyncFlags()
	tr.timeout = waitTimeout + resyncs
	if _, err := o.start(tr, flags...); err != nil {
		return err
	}
	defer tr.withdraw(ctx) //nolint:errcheck // runs after a failure, and the test reports that one
	if err := errors.Join(tr.mutate(ctx, o.path, o.value, admissionregistrationv1.Create, admissionregistrationv1.Update), o.awaitInForce(ctx, tr, true)); err != nil {
		return err
	}
	tr.mutated["a"] = o.capped
	if err := errors.Join(tr.createFoo(ctx, "a", "a", 5), o.stays(ctx, tr, 5, resyncs)); err != nil {
		return err
	}
	if err := errors.Join(tr.scaleFoo(ctx, "a", 3), o.stays(ctx, tr, 3, resyncs)); err != nil {
		return err
	}
	if err := errors.Join(tr.withdraw(ctx), o.awaitInForce(ctx, tr, false)); err != nil {
		return err
	}
	delete(tr.mutated, "a")
	if err := errors.Join(o.change(ctx, tr), tr.stableAndQuiet(ctx)); err != nil {
		return fmt.Errorf("after the policy is deleted: %w", err)
	}
	return nil
}

// stays returns an error unless the condition says what differs and the controller leaves
// it so.
func (o *mutation) stays(ctx context.Context, tr *trial, replicas int32, howLong time.Duration) error {
	if err := tr.judge(ctx, howLong); err != nil {
		return err
	}
	return tr.checkMessageStart(ctx, "a", `The API server stored Deployment "a" otherwise than asked: `, o.differs(replicas))
}

// awaitInForce waits until the policy is in force, or no longer.
func (o *mutation) awaitInForce(ctx context.Context, tr *trial, inForce bool) error {
	probe := newDeployment("probe", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })
	return tr.awaitAdmission(ctx, fmt.Sprintf("the policy is in force: %v", inForce), probe,
		func(d *appsv1.Deployment, err error) bool { return err == nil && o.inForce(d) == inForce })
}

// mutatedOnCreate is G14: a policy changes a Deployment only when it is created. That
// says nothing about updates, so one of them repairs it.
func mutatedOnCreate(writeCounts) []trialCase {
	return []trialCase{{"the replicas", func(ctx context.Context, tr *trial) error {
		o := capping()
		if _, err := tr.start(); err != nil {
			return err
		}
		defer tr.withdraw(ctx) //nolint:errcheck // runs after a failure, and the test reports that one
		if err := errors.Join(tr.mutate(ctx, o.path, o.value, admissionregistrationv1.Create), o.awaitInForce(ctx, tr, true)); err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 5), tr.stableAndQuiet(ctx)); err != nil {
			return err
		}
		updates := 0
		for _, call := range tr.calls() {
			if isUpdate(call) {
				updates++
			}
		}
		if updates != 1 {
			return fmt.Errorf("it repaired the Deployment by %d updates", updates)
		}
		return nil
	}}}
}

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
