// SPDX-License-Identifier: Apache-2.0

// Sets and references under the faults of pkg/reconcile/reconciletest: a kind with a set that is rolled out one after
// the other and depends on a Secret, which is watched, and one with a single child and a Secret that is polled.

package main

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

// parts declares a set of Deployments, one for each replica of a Foo, whose Pods restart when the Secret changes.
func parts() plan.Row[*samplev1alpha1.Foo, *appsv1.Deployment] {
	return plan.Row[*samplev1alpha1.Foo, *appsv1.Deployment]{
		Kind: "Deployment", Resource: deploymentsResource, NamedBy: "spec.deploymentName", OneAtATime: true,
		Names: func(foo *samplev1alpha1.Foo) (names []string) {
			for i := range *foo.Spec.Replicas {
				names = append(names, fmt.Sprintf("%s-%d", foo.Spec.DeploymentName, i))
			}
			return names
		},
		Init: func(part *appsv1.Deployment, _ *samplev1alpha1.Foo) {
			labels := map[string]string{"part": part.Name}
			part.Spec.Selector, part.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
			part.Spec.Template.Spec.Containers = []corev1.Container{{Name: "part", Image: "part"}}
		},
		SetOwned: func(part *appsv1.Deployment, _ *samplev1alpha1.Foo, view *plan.View) {
			part.Spec.MinReadySeconds = 3
			if digest := view.Digest("Secret"); digest != "" {
				metav1.SetMetaDataAnnotation(&part.Spec.Template.ObjectMeta, "secret", digest)
			}
		},
		Keep: func(kept, found *appsv1.Deployment) {
			kept.Spec.MinReadySeconds, kept.Spec.Template.Annotations = found.Spec.MinReadySeconds, found.Spec.Template.Annotations
			kept.Status = found.Status
		},
		Judge: func(part *appsv1.Deployment) plan.Readiness {
			if status := part.Status; status.ObservedGeneration < part.Generation || status.UpdatedReplicas < 1 || status.AvailableReplicas < 1 {
				return plan.NotReady(plan.ReasonProgressing, "Deployment %q is not rolled out", part.Name)
			}
			return plan.Ready("%s is available", part.Name)
		},
		Serves: func(part *appsv1.Deployment) bool { return part.Status.AvailableReplicas > 0 },
		Restarts: func(before, after *appsv1.Deployment) bool {
			return before.Spec.Template.Annotations["secret"] != after.Spec.Template.Annotations["secret"]
		},
		Report: func(foo *samplev1alpha1.Foo, part *appsv1.Deployment) {
			foo.Status.AvailableReplicas += part.Status.AvailableReplicas
		},
	}
}

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// namedSecret declares the Secret that has a Foo's name for its children.
func namedSecret(poll time.Duration) plan.Ref[*samplev1alpha1.Foo, *corev1.Secret] {
	return plan.Ref[*samplev1alpha1.Foo, *corev1.Secret]{
		Kind: "Secret", Resource: secrets, NamedBy: "spec.deploymentName", Poll: poll,
		Names:  func(foo *samplev1alpha1.Foo) []string { return []string{foo.Spec.DeploymentName} },
		Digest: func(secret *corev1.Secret) any { return secret.Data },
		Judge: func(secret *corev1.Secret) plan.Readiness {
			if len(secret.Data["key"]) == 0 {
				return plan.Stalled("SecretFailed", "Secret %q has no key", secret.Name)
			}
			return plan.Ready("")
		},
	}
}

// simulate runs the simulation of Foos that have these rows.
func simulate(t *testing.T, rows func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo]) {
	t.Helper()
	declare := func(clients kinds.Clients) *table.Kind {
		return table.Of(plan.Kind{Name: "Foo", Resource: footest.FoosResource},
			clients.CustomInformers.Samplecontroller().V1alpha1().Foos().Informer(), clients.Custom.SamplecontrollerV1alpha1().Foos, rows(clients)...)
	}
	kube, custom := kubernetes.New(nil), clientset.New(nil)
	reconciletest.Test(t, reconciletest.Controller[*samplev1alpha1.Foo]{
		Kind: declare(kinds.Clients{
			Kube: kube, Custom: custom, KubeInformers: kubeinformers.NewSharedInformerFactory(kube, 0), CustomInformers: fooinformers.NewSharedInformerFactory(custom, 0),
		}).Kind,
		Example: &samplev1alpha1.Foo{Spec: samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(2))}},
		Edits: []func(*samplev1alpha1.Foo){
			func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = new(int32(3)) },
			func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = "api" },
		},
		Named: map[string]reconciletest.Named{"Secret": {
			Object: &corev1.Secret{Data: map[string][]byte{"key": []byte("swordfish")}},
			Edits:  []func(plan.Object){func(secret plan.Object) { secret.(*corev1.Secret).Data["key"] = []byte("open sesame") }},
			Spoil:  func(secret plan.Object) { delete(secret.(*corev1.Secret).Data, "key") },
		}},
		Start: startWith(declare),
		Every: 100, // all take ten minutes
	})
}

func TestSimulationOfASet(t *testing.T) {
	simulate(t, func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
		return []table.Row[*samplev1alpha1.Foo]{
			table.Uses(namedSecret(0), clients.KubeInformers.Core().V1().Secrets().Informer(), clients.Kube.CoreV1().Secrets),
			table.Owns(parts(), clients.KubeInformers.Apps().V1().Deployments().Informer(), clients.Kube.AppsV1().Deployments),
		}
	})
}

func TestSimulationOfAPolledReference(t *testing.T) {
	one := parts()
	one.Name, one.Names, one.OneAtATime = func(foo *samplev1alpha1.Foo) string { return foo.Spec.DeploymentName }, nil, false
	own := one.SetOwned
	one.SetOwned = func(child *appsv1.Deployment, foo *samplev1alpha1.Foo, view *plan.View) {
		own(child, foo, view)
		child.Spec.MinReadySeconds = *foo.Spec.Replicas
	}
	simulate(t, func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
		return []table.Row[*samplev1alpha1.Foo]{
			table.Uses(namedSecret(7*time.Second), cache.SharedIndexInformer(nil), clients.Kube.CoreV1().Secrets),
			table.Owns(one, clients.KubeInformers.Apps().V1().Deployments().Informer(), clients.Kube.AppsV1().Deployments),
		}
	})
}
