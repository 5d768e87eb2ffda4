// SPDX-License-Identifier: Apache-2.0

// Rows G3 and G14: an admission policy changes each Deployment that is written, or only
// when it is created.

package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
)

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
