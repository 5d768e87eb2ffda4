// SPDX-License-Identifier: Apache-2.0

// The kinds that the simulation and the exploration run besides the program's own.

package looptest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// Simulated is a kind whose Go type is Foo, and what the simulation knows of its controller, without Start.
type Simulated struct {
	reconciletest.Controller[*samplev1alpha1.Foo]

	Declare func(clients kinds.Clients) *table.Kind
}

// Set is a set that is rolled out one after the other.
func Set() Simulated { return simulated(foosWith(plan.Kind{}, set)) }

// SetWithSecret is such a set that depends on a Secret, which is watched.
func SetWithSecret() Simulated {
	return simulated(foosWith(plan.Kind{}, func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
		return []table.Row[*samplev1alpha1.Foo]{
			table.Uses(namedSecret(0), clients.KubeInformers.Core().V1().Secrets().Informer(), clients.Kube.CoreV1().Secrets),
			deploymentsOf(clients, parts(true)),
		}
	}))
}

// PolledSecret is a single child that depends on a Secret, which is polled.
func PolledSecret() Simulated {
	one := parts(true)
	one.Name, one.Names, one.OneAtATime = func(foo *samplev1alpha1.Foo) string { return foo.Spec.DeploymentName }, nil, false
	own := one.SetOwned
	one.SetOwned = func(child *appsv1.Deployment, foo *samplev1alpha1.Foo, view *plan.View) {
		own(child, foo, view)
		child.Spec.MinReadySeconds = *foo.Spec.Replicas
	}
	return simulated(foosWith(plan.Kind{}, func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
		return []table.Row[*samplev1alpha1.Foo]{
			table.Uses(namedSecret(7*time.Second), cache.SharedIndexInformer(nil), clients.Kube.CoreV1().Secrets),
			deploymentsOf(clients, one),
		}
	}))
}

// Elsewhere is a ConfigMap in another namespace.
func Elsewhere() Simulated {
	return simulated(grants(func(grant *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]) {
		grant.Name = func(foo *samplev1alpha1.Foo) string { return foo.Spec.DeploymentName }
		grant.Namespace = func(*samplev1alpha1.Foo) string { return "elsewhere" }
	}))
}

// Entry is an entry that an authority has for each Foo, besides a set.
func Entry() Simulated {
	call := (&authority{answer: enter}).entries()
	call.Poll, call.Condition = 0, "" // the simulation knows the condition Ready alone
	of := simulated(foosWith(plan.Kind{Finalizer: entryFinalizer}, func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
		return append([]table.Row[*samplev1alpha1.Foo]{table.Calls(call)}, set(clients)...)
	}))
	of.Outside = wrongEntries
	return of
}

// simulated derives from a declaration what the simulation knows of a kind.
func simulated(declare func(clients kinds.Clients) *table.Kind) Simulated {
	kube, custom := kubernetes.New(nil), clientset.New(nil)
	kind := declare(kinds.Clients{
		Kube: kube, Custom: custom, KubeInformers: kubeinformers.NewSharedInformerFactory(kube, 0), CustomInformers: fooinformers.NewSharedInformerFactory(custom, 0),
	}).Kind
	of := Simulated{Declare: declare, Controller: reconciletest.Controller[*samplev1alpha1.Foo]{
		Kind:    kind,
		Example: &samplev1alpha1.Foo{Spec: samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(2))}},
		Edits: []func(*samplev1alpha1.Foo){
			func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = new(int32(3)) },
			func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = "api" },
		},
		Every: 100, // all take ten minutes
	}}
	if len(kind.References) > 0 {
		of.Named = map[string]reconciletest.Named{"Secret": {
			Object: &corev1.Secret{Data: map[string][]byte{"key": []byte("swordfish")}},
			Edits:  []func(plan.Object){func(secret plan.Object) { secret.(*corev1.Secret).Data["key"] = []byte("open sesame") }},
			Spoil:  func(secret plan.Object) { delete(secret.(*corev1.Secret).Data, "key") },
		}}
	}
	if kind.Finalizer != "" {
		of.ClearOwned = func(foo *samplev1alpha1.Foo) {
			foo.Finalizers = slices.DeleteFunc(foo.Finalizers, func(name string) bool { return name == kind.Finalizer })
		}
	}
	return of
}

func set(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
	return []table.Row[*samplev1alpha1.Foo]{deploymentsOf(clients, parts(false))}
}

func deploymentsOf(clients kinds.Clients, row plan.Row[*samplev1alpha1.Foo, *appsv1.Deployment]) table.Row[*samplev1alpha1.Foo] {
	return table.Owns(row, clients.KubeInformers.Apps().V1().Deployments().Informer(), clients.Kube.AppsV1().Deployments)
}

// parts declares a set of Deployments, one for each replica of a Foo, whose Pods may restart when the Secret changes.
func parts(withSecret bool) plan.Row[*samplev1alpha1.Foo, *appsv1.Deployment] {
	return plan.Row[*samplev1alpha1.Foo, *appsv1.Deployment]{
		Kind: "Deployment", Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), NamedBy: "spec.deploymentName", OneAtATime: true,
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
			if withSecret {
				view.AnnotateDigest(&part.Spec.Template.ObjectMeta, "secret", "Secret")
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

// answerTime is how long the authority takes, so that much can happen while a call is in progress.
const answerTime = 250 * time.Millisecond

// enter answers a call. The authority has made or removed the entry before its answer arrives, if it does.
func enter(ctx context.Context, verb string, foo *samplev1alpha1.Foo) (entry, error) {
	entries, is := reconciletest.Outside(ctx), entry{Text: fmt.Sprintf("%s-%d", foo.Spec.DeploymentName, *foo.Spec.Replicas)}
	if verb == "undo" {
		entries.Delete(foo.UID)
	} else {
		entries.Store(foo.UID, is.Text)
	}
	select {
	case <-ctx.Done():
		return entry{}, ctx.Err()
	case <-time.After(answerTime):
		return is, nil
	}
}

// wrongEntries says which entries are not as the Foos ask.
func wrongEntries(entries *sync.Map, objects []footest.Object) (wrong []string) {
	left := map[types.UID]string{}
	entries.Range(func(uid, text any) bool {
		left[uid.(types.UID)] = text.(string)
		return true
	})
	for _, object := range objects {
		if foo, ok := object.(*samplev1alpha1.Foo); ok {
			if asked := fmt.Sprintf("%s-%d", foo.Spec.DeploymentName, *foo.Spec.Replicas); left[foo.UID] != asked || foo.Status.Selector != asked {
				wrong = append(wrong, fmt.Sprintf("%s has the entry %q and reports %q, and asks for %q", foo.Name, left[foo.UID], foo.Status.Selector, asked))
			}
			delete(left, foo.UID)
		}
	}
	for uid, text := range left {
		wrong = append(wrong, fmt.Sprintf("the entry %q of %s is left, which is gone", text, uid))
	}
	return wrong
}
