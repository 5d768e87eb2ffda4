// SPDX-License-Identifier: Apache-2.0

// Tests of the simulation with controllers that break a rule by a write of a Deployment.

package simulation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestBrokenWritesOfDeploymentsAreDetected(t *testing.T) {
	checkDetected(t, []broken{
		{"creates the wrong number of replicas", once(createOther), "at rest: Foo a has a Deployment that has 3 replicas"},
		{"creates a Deployment without an owner", once(createOrphan), "sent create of deployments web, without a controller reference"},
		{"adopts a Deployment without consent", once(adoptWithoutConsent), "sent update of deployments foreign, which adopts it, although nobody has handed it over to a"},
		{"changes fields of others", once(adoptWithoutConsent), "changed fields of others in deployments foreign"},
		{"creates its Deployment twice", once(createTwice), "sent create of deployments web although its own write 0s ago"},
	})
}

func foreignDeployment(name string) *appsv1.Deployment {
	return footest.Primary.ForeignNamed(name).(*appsv1.Deployment)
}

// TestAFaultIsInjectedOnce checks that a run with a fault reaches the injection point of
// the run without faults, and that the fault replaces the call there.
func TestAFaultIsInjectedOnce(t *testing.T) {
	w := workload{before: []step{"create a web"}}
	c := w.run(t, footest.FooOwner, once(createOrphan), noFault, func(*cluster) {})
	point := injectionPoint{"create", objectID{footest.Primary, "web"}, 1}
	if !slices.Contains(c.points, point) {
		t.Fatalf("the points %v do not contain %s", c.points, point)
	}
	inject := func(at injectionPoint) fault {
		if at == point {
			return internalError
		}
		return fault{}
	}
	c = w.run(t, footest.FooOwner, once(createOrphan), inject, func(*cluster) {})
	if trace := strings.Join(c.trace, "\n"); strings.Count(trace, `meets "500 Internal Server Error"`) != 1 || strings.Contains(trace, "create deployments web 1 -> ok") {
		t.Errorf("the fault did not replace the call exactly once:\n%s", trace)
	}
}

func createOrphan(ctx context.Context, clients Clients, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	_, err := clients.Kubernetes.AppsV1().Deployments(footest.Namespace).Create(ctx, foreignDeployment(foo.Spec.DeploymentName), metav1.CreateOptions{})
	return err
}

// createOther creates a Deployment of a Foo that has more replicas than the Foo asks for.
func createOther(ctx context.Context, clients Clients, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	deployment := foreignDeployment(foo.Spec.DeploymentName)
	deployment.OwnerReferences = []metav1.OwnerReference{controllerRef(foo)}
	_, err := clients.Kubernetes.AppsV1().Deployments(footest.Namespace).Create(ctx, deployment, metav1.CreateOptions{})
	return err
}

func createTwice(ctx context.Context, clients Clients, recorder record.EventRecorder, foo *samplev1alpha1.Foo) error {
	return errors.Join(createOther(ctx, clients, recorder, foo), createOther(ctx, clients, recorder, foo))
}

// adoptWithoutConsent makes a Foo the controller of a Deployment without consent, and
// changes a field that no Foo owns.
func adoptWithoutConsent(ctx context.Context, clients Clients, _ record.EventRecorder, foo *samplev1alpha1.Foo) error {
	client := clients.Kubernetes.AppsV1().Deployments(footest.Namespace)
	deployment, err := client.Get(ctx, "foreign", metav1.GetOptions{})
	if err != nil {
		return err
	}
	deployment.OwnerReferences = []metav1.OwnerReference{controllerRef(foo)}
	deployment.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	_, err = client.Update(ctx, deployment, metav1.UpdateOptions{})
	return err
}
