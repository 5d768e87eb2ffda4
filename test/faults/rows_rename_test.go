// SPDX-License-Identifier: Apache-2.0
// Row C16: a Foo that is renamed stays in service.

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// renamed are C16: from when a Foo is ready, there is always a Deployment of its own with
// available Pods.
func renamed(writes writeCounts) []trialCase {
	if writes["rename"] == 0 {
		return nil
	}
	cases := []trialCase{
		{"the number of Pods is left to others", renamedWithOthersNumber},
		{"a third name while the second Deployment has no Pods", renamedTwice},
		{"the new name is refused", renamedAndRefused},
	}
	for i, c := range cases {
		cases[i].run = func(ctx context.Context, tr *trial) error { return errors.Join(c.run(ctx, tr), tr.checkService(ctx)) }
	}
	return cases
}

// checkService returns an error for each time in which a Foo that had been ready had no
// Deployment with available Pods.
func (tr *trial) checkService(ctx context.Context) error {
	if !tr.subject.conditions {
		return nil
	}
	interruptions, err := tr.statuses.recording.Interruptions(ctx, func(child footest.Object) bool {
		d, ok := child.(*appsv1.Deployment)
		return ok && d.Status.AvailableReplicas > 0
	})
	errs := []error{err}
	for _, sentence := range interruptions {
		errs = append(errs, errors.New(sentence))
	}
	return errors.Join(errs...)
}

// renamedWithOthersNumber renames a Foo that leaves the number of Pods to others, such as
// an autoscaler: the new Deployment begins with it.
func renamedWithOthersNumber(ctx context.Context, tr *trial) error {
	if _, err := tr.start(); err != nil {
		return err
	}
	_, err := tr.foosClient().Create(ctx, &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: samplev1alpha1.FooSpec{DeploymentName: "one"},
	}, metav1.CreateOptions{})
	if err := errors.Join(err, tr.settled(ctx), tr.patchDeployment(ctx, "one", `{"spec":{"replicas":3}}`), tr.settled(ctx)); err != nil {
		return err
	}
	if err := errors.Join(tr.renameDeployment(ctx, "a", "two"), tr.stableAndQuiet(ctx), tr.serves(ctx, "two", 3)); err != nil {
		return err
	}
	for _, call := range tr.calls() {
		var created appsv1.Deployment
		if !isCreate(call) || json.Unmarshal(call.Answer, &created) != nil || created.Name != "two" {
			continue
		}
		if begun := *created.Spec.Replicas; begun != 3 {
			return fmt.Errorf("Deployment two began with %d replicas, and the one before had 3", begun)
		}
	}
	return nil
}

// renamedTwice renames a Foo again while a quota keeps the new Deployment from having
// Pods.
func renamedTwice(ctx context.Context, tr *trial) error {
	if _, err := tr.start(); err != nil {
		return err
	}
	if err := errors.Join(tr.createFoo(ctx, "a", "one", 1), tr.settled(ctx)); err != nil {
		return err
	}
	quotas := tr.cluster.kube.CoreV1().ResourceQuotas(tr.ns)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "no-more-pods"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	_, err := quotas.Create(ctx, quota, metav1.CreateOptions{})
	err = errors.Join(err, tr.await(ctx, "the quota is in force", func(ctx context.Context) error {
		found, err := quotas.Get(ctx, quota.Name, metav1.GetOptions{})
		if err == nil && len(found.Status.Used) == 0 {
			err = errors.New("status.used is empty")
		}
		return err
	}))
	const stays = `Deployment "one" stays in service until then`
	tr.refused["a"] = samplev1alpha1.ReasonDeploymentFailed
	if err := errors.Join(err, tr.renameDeployment(ctx, "a", "two"), tr.awaitReported(ctx, "a", `Deployment "two"`, stays)); err != nil {
		return err
	}
	if err := errors.Join(tr.renameDeployment(ctx, "a", "three"), tr.awaitReported(ctx, "a", `Deployment "three"`, stays), tr.awaitGone(ctx, "two"),
		tr.stableAndQuiet(ctx), tr.serves(ctx, "one", 1)); err != nil {
		return err
	}
	delete(tr.refused, "a")
	return errors.Join(quotas.Delete(ctx, quota.Name, metav1.DeleteOptions{}), tr.stableAndQuiet(ctx))
}

// awaitGone waits until a Deployment is deleted.
func (tr *trial) awaitGone(ctx context.Context, deployment string) error {
	return tr.await(ctx, "Deployment "+deployment+" is gone", func(ctx context.Context) error {
		_, err := tr.deployments().Get(ctx, deployment, metav1.GetOptions{})
		switch {
		case err == nil:
			return errors.New("it still exists")
		case apierrors.IsNotFound(err):
			return nil
		}
		return err
	})
}

// renamedAndRefused renames a Foo to a name that a policy refuses.
func renamedAndRefused(ctx context.Context, tr *trial) error {
	if _, err := tr.start(); err != nil {
		return err
	}
	if err := errors.Join(tr.createFoo(ctx, "a", "one", 1), tr.settled(ctx)); err != nil {
		return err
	}
	defer tr.withdraw(ctx) //nolint:errcheck // runs after a failure, and the test reports that one
	if err := errors.Join(tr.deny(ctx, "two", admissionregistrationv1.Create, fmt.Sprintf("'%s'", denialText)),
		tr.awaitDenied(ctx, "two", admissionregistrationv1.Create)); err != nil {
		return err
	}
	tr.refused["a"] = samplev1alpha1.ReasonDeploymentFailed
	if err := errors.Join(tr.renameDeployment(ctx, "a", "two"), tr.awaitReported(ctx, "a", denialText), tr.stableAndQuiet(ctx), tr.serves(ctx, "one", 1)); err != nil {
		return err
	}
	delete(tr.refused, "a")
	return errors.Join(tr.withdraw(ctx), tr.stableAndQuiet(ctx))
}
