// SPDX-License-Identifier: Apache-2.0

// Deployments: how the tests of this kind create and read them.

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	"example.com/sample-controller/test/footest"
)

// createDeployment creates a Deployment that no Foo controls.
func (ns *namespace) createDeployment(t *testing.T, name string, replicas int32) *appsv1.Deployment {
	t.Helper()
	created, err := ns.deployments().Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelsOf(name)},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: selectorOf(name),
			Template: templateOf(name),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("Creating Deployment %s: %v", name, err)
	}
	return created
}

func (ns *namespace) deployments() typedappsv1.DeploymentInterface {
	return ns.in.kube.AppsV1().Deployments(ns.name)
}

func asksFor(deployment *appsv1.Deployment, want int32) error {
	if got := *deployment.Spec.Replicas; got != want {
		return fmt.Errorf("spec.replicas is %d, want %d", got, want)
	}
	return nil
}

// foosDeployment returns the Deployment that the controller creates for a Foo called foo.
func foosDeployment() *appsv1.Deployment { return footest.UnstoredDeployment("foo") }

func (ns *namespace) getDeployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	return get(t, ns.deployments(), name)
}

// settledDeployment waits until the Deployment controller has completed a rollout, and
// returns the Deployment.
func (ns *namespace) settledDeployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	ns.awaitSettledOne(t, name)
	return ns.getDeployment(t, name)
}

// nginxOf returns the container that a Foo owns.
func nginxOf(d *appsv1.Deployment) *corev1.Container {
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == "nginx" {
			return c
		}
	}
	return &corev1.Container{}
}
