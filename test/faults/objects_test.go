// SPDX-License-Identifier: Apache-2.0

// What users and other writers do to objects in a trial.

package faults

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// createFoo creates a Foo with a Deployment name and a number of replicas.
func (tr *trial) createFoo(ctx context.Context, name, deployment string, replicas int32) error {
	_, err := tr.foosClient().Create(ctx, &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: deployment, Replicas: &replicas},
	}, metav1.CreateOptions{})
	return err
}

func (tr *trial) scaleFoo(ctx context.Context, name string, replicas int32) error {
	return tr.patchFoo(ctx, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (tr *trial) renameDeployment(ctx context.Context, foo, deployment string) error {
	return tr.patchFoo(ctx, foo, fmt.Sprintf(`{"spec":{"deploymentName":%q}}`, deployment))
}

func (tr *trial) patchFoo(ctx context.Context, name, patch string) error {
	_, err := tr.foosClient().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (tr *trial) patchDeployment(ctx context.Context, name, patch string) error {
	_, err := tr.deployments().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	return err
}

// annotate adds an annotation to a Deployment as another writer. The oracle checks that
// the annotation stays.
func (tr *trial) annotate(ctx context.Context, deployment, value string) error {
	if err := tr.patchDeployment(ctx, deployment, fmt.Sprintf(`{"metadata":{"annotations":{"somebody":%q}}}`, value)); err != nil {
		return err
	}
	tr.protectAnnotation(deployment, "somebody", value)
	return nil
}

func (tr *trial) deleteFoo(ctx context.Context, name string, how metav1.DeletionPropagation) error {
	return tr.foosClient().Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &how})
}

// createForeign creates a Deployment that belongs to somebody else.
func (tr *trial) createForeign(ctx context.Context, name string, options ...func(*appsv1.Deployment)) error {
	made, err := tr.deployments().Create(ctx, newDeployment(name, options...), metav1.CreateOptions{FieldManager: "somebody"})
	if err != nil {
		return err
	}
	tr.protect(made)
	return nil
}
