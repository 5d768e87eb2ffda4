// SPDX-License-Identifier: Apache-2.0

// Package objects builds the objects that the benchmark creates and those that the bare
// loop writes: the same Deployment, status and Event as the controller's.
package objects

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// manager is the field manager of these writes.
const manager = "bare"

// Foo returns a Foo that asks for one Pod, from a Deployment of the Foo's own name.
func Foo(namespace, name string) *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: new(int32(1))},
	}
}

// Deployment returns the Deployment that a Foo asks for.
func Deployment(foo *samplev1alpha1.Foo) *appsv1.Deployment {
	deployment := Foreign(foo.Namespace, foo.Spec.DeploymentName)
	labels := map[string]string{"app": "nginx", "controller": foo.Name}
	deployment.Spec.Selector.MatchLabels = labels
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Replicas = foo.Spec.Replicas
	deployment.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(foo, samplev1alpha1.SchemeGroupVersion.WithKind("Foo")),
	}
	return deployment
}

// Foreign returns a Deployment that no Foo controls or asks for.
func Foreign(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}
}

// WithStatus returns a copy of a Foo with the status that a controller calculates after
// creating the Deployment: no Pod is available yet.
func WithStatus(foo *samplev1alpha1.Foo) *samplev1alpha1.Foo {
	foo = foo.DeepCopy()
	foo.Status.ObservedGeneration = foo.Generation
	foo.Status.Selector = "app=nginx,controller=" + foo.Name
	meta.SetStatusCondition(&foo.Status.Conditions, metav1.Condition{
		Type:               samplev1alpha1.ConditionReady,
		Status:             metav1.ConditionFalse,
		ObservedGeneration: foo.Generation,
		Reason:             samplev1alpha1.ReasonProgressing,
		Message:            message(foo),
	})
	return foo
}

// Settle makes the two writes for a Foo, and no other call.
func Settle(ctx context.Context, kube kubernetes.Interface, foos clientset.Interface, foo *samplev1alpha1.Foo) error {
	if _, err := kube.AppsV1().Deployments(foo.Namespace).Create(ctx, Deployment(foo), metav1.CreateOptions{FieldManager: manager}); err != nil {
		return fmt.Errorf("creating a Deployment: %w", err)
	}
	if _, err := foos.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(ctx, WithStatus(foo), metav1.UpdateOptions{FieldManager: manager}); err != nil {
		return fmt.Errorf("writing a status: %w", err)
	}
	return nil
}

// Event returns an Event for that status.
func Event(foo *samplev1alpha1.Foo) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: foo.Namespace, Name: fmt.Sprintf("%s.%x", foo.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: samplev1alpha1.GroupVersion.String(), Kind: "Foo",
			Namespace: foo.Namespace, Name: foo.Name, UID: foo.UID, ResourceVersion: foo.ResourceVersion,
		},
		Reason:         samplev1alpha1.ReasonProgressing,
		Message:        message(foo),
		Source:         corev1.EventSource{Component: manager},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Type:                corev1.EventTypeNormal,
		ReportingController: manager,
	}
}

func message(foo *samplev1alpha1.Foo) string {
	return fmt.Sprintf("Deployment %q is rolling out: 0 of 1 Pods available", foo.Spec.DeploymentName)
}
