// SPDX-License-Identifier: Apache-2.0

// Two kinds that own Deployments, in one program: their controllers read one informer.

package looptest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

// barsDeployment owns spec.minReadySeconds, which Foos leave to others.
var barsDeployment = plan.Row[*samplev1alpha1.Foo, *appsv1.Deployment]{
	Kind: "Deployment", Resource: footest.Primary.Resource, NamedBy: "spec.deploymentName",
	Name: func(bar *samplev1alpha1.Foo) string { return bar.Spec.DeploymentName },
	Init: func(child *appsv1.Deployment, _ *samplev1alpha1.Foo) {
		child.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "bar"}}
		child.Spec.Template.Labels = map[string]string{"app": "bar"}
	},
	SetOwned: func(child *appsv1.Deployment, bar *samplev1alpha1.Foo, _ *plan.View) {
		child.Spec.MinReadySeconds = ptr.Deref(bar.Spec.Replicas, 1)
	},
	Keep: func(kept, found *appsv1.Deployment) {
		kept.Spec.MinReadySeconds, kept.Status.AvailableReplicas = found.Spec.MinReadySeconds, found.Status.AvailableReplicas
	},
	Judge: func(child *appsv1.Deployment) plan.Readiness {
		if child.Status.AvailableReplicas == 0 {
			return plan.NotReady(plan.ReasonProgressing, "Deployment %q has no Pods", child.Name)
		}
		return plan.Ready("Deployment %q has Pods", child.Name)
	},
}

// twoKinds is a Cluster with the controllers of Foos and of Bars, whose Go type and whose resource in the API are those of
// Foos, in an API server of their own.
type twoKinds struct {
	*Cluster

	bars *foofake.Clientset
}

// testTwoKinds calls a test with each of the kinds as the first of the program.
func (l Loop) testTwoKinds(t *testing.T, foo, bar *samplev1alpha1.Foo, body func(f *twoKinds)) {
	t.Helper()
	for _, first := range []string{"Foo", "Bar"} {
		t.Run(first+" first", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &twoKinds{NewCluster(t, foo.DeepCopy()), foofake.NewSimpleClientset(bar.DeepCopy())}
				f.API.Serve(t, &f.bars.Fake, f.bars.Tracker())
				defer f.start(l, first)()
				body(f)
			})
		})
	}
}

// start runs the controllers, wired as in main.go. The function that it returns stops them.
func (f *twoKinds) start(loop Loop, first string) (stop func()) {
	f.T.Helper()
	clients := f.Clients()
	clients.CustomInformers = fooinformers.NewSharedInformerFactory(f.Foos, 30*time.Second)
	barInformers := fooinformers.NewSharedInformerFactory(f.bars, 30*time.Second)
	all := []*table.Kind{
		kinds.Foos(clients, kinds.Options{Image: footest.DefaultImage}),
		table.Of(plan.Kind{Name: "Bar", Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "bars"}},
			barInformers.Samplecontroller().V1alpha1().Foos().Informer(), f.bars.SamplecontrollerV1alpha1().Foos,
			table.Owns(barsDeployment, clients.KubeInformers.Apps().V1().Deployments().Informer(), f.Kube.AppsV1().Deployments)),
	}
	all[0].Rows, all[0].Children = all[0].Rows[:1], all[0].Children[:1] // only the Deployment, whatever else a Foo may own one day
	if first == "Bar" {
		slices.Reverse(all)
	}
	program, err := loop(f.Cluster, clock.RealClock{}, all...)
	footest.Must(f.T, err)
	ctx, cancel := context.WithCancel(f.T.Context())
	clients.KubeInformers.StartWithContext(ctx)
	clients.CustomInformers.StartWithContext(ctx)
	barInformers.StartWithContext(ctx)
	done := make(chan error, 1)
	go func() { done <- program.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		footest.Must(f.T, <-done)
		clients.KubeInformers.Shutdown()
		clients.CustomInformers.Shutdown()
		barInformers.Shutdown()
	}
}

// expectWrites checks the writes since its last call: first those of Deployments and Foos, then those of Bars.
func (f *twoKinds) expectWrites(want ...string) {
	f.T.Helper()
	synctest.Wait()
	writes := f.TakeWrites()
	for _, action := range f.bars.Actions() {
		if action.GetVerb() == "update" {
			writes = append(writes, "of a Bar: "+nameOf(action))
		}
	}
	f.bars.ClearActions()
	footest.ExpectEqual(f.T, "the list of writes", want, writes)
}

// change changes a Deployment, as its users and the controllers of Kubernetes do.
func (f *twoKinds) change(name string, change func(deployment *appsv1.Deployment)) {
	f.T.Helper()
	deployment := f.deployment(name)
	change(deployment)
	f.Put(deployment)
}

func (f *twoKinds) deployment(name string) *appsv1.Deployment {
	f.T.Helper()
	return f.StoredChild(name).(*appsv1.Deployment)
}

// expectControllers checks the kind and the name of each Deployment's controller.
func (f *twoKinds) expectControllers(want map[string]string) {
	f.T.Helper()
	for name, of := range want {
		if ref := metav1.GetControllerOf(f.deployment(name)); ref == nil || ref.Kind+" "+ref.Name != of {
			f.T.Errorf("the Deployment %s belongs to %v, not to %s", name, ref, of)
		}
	}
}

// readyOf returns the condition Ready of an owner, as "status reason: message".
func (f *twoKinds) readyOf(client *foofake.Clientset, name string) string {
	f.T.Helper()
	stored, err := client.Tracker().Get(footest.FoosResource, footest.Namespace, name)
	footest.Must(f.T, err)
	ready := meta.FindStatusCondition(stored.(*samplev1alpha1.Foo).Status.Conditions, plan.ConditionReady)
	return string(ready.Status) + " " + ready.Reason + ": " + ready.Message
}

// becomeAvailable reports that the Pods of a Deployment are available.
func becomeAvailable(deployment *appsv1.Deployment) {
	pods := ptr.Deref(deployment.Spec.Replicas, 1)
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: pods, UpdatedReplicas: pods, ReadyReplicas: pods, AvailableReplicas: pods,
	}
}

// testTwoKindsAtRest calls a test with the Foo "a", which has the Deployment "web", and the Bar "b",
// which has "api". Both are ready.
func (l Loop) testTwoKindsAtRest(t *testing.T, body func(f *twoKinds)) {
	t.Helper()
	bar := footest.Foo("b", footest.WithChildName("api"), footest.WithReplicas(3))
	l.testTwoKinds(t, footest.Foo("a", footest.WithReplicas(3)), bar, func(f *twoKinds) {
		f.expectControllers(map[string]string{"web": "Foo a", "api": "Bar b"})
		f.change("web", becomeAvailable)
		f.change("api", becomeAvailable)
		synctest.Wait()
		for _, ready := range []string{f.readyOf(f.Foos, "a"), f.readyOf(f.bars, "b")} {
			if !strings.HasPrefix(ready, "True Available") {
				t.Errorf("the condition Ready is %s", ready)
			}
		}
		f.TakeWrites()
		f.bars.ClearActions()
		body(f)
	})
}

func (l Loop) TestTwoKindsThatOwnTheSameTypeConvergeAndAreSilent(t *testing.T) {
	l.testTwoKindsAtRest(t, func(f *twoKinds) {
		advance(time.Hour)
		f.expectWrites()
	})
}

func (l Loop) TestOfTwoKindsEachRepairsItsOwnFieldsOfItsOwnChildren(t *testing.T) {
	l.testTwoKindsAtRest(t, func(f *twoKinds) {
		f.change("web", func(web *appsv1.Deployment) { web.Spec.MinReadySeconds = 7 })
		f.change("api", func(api *appsv1.Deployment) { api.Spec.Replicas = new(int32(7)) })
		advance(time.Hour)
		f.expectWrites()
		f.change("web", func(web *appsv1.Deployment) { web.Spec.Replicas = new(int32(7)) })
		f.change("api", func(api *appsv1.Deployment) { api.Spec.MinReadySeconds = 7 })
		synctest.Wait()
		web, api := f.deployment("web").Spec, f.deployment("api").Spec
		if *web.Replicas != 3 || web.MinReadySeconds != 7 || *api.Replicas != 7 || api.MinReadySeconds != 3 {
			t.Errorf("the Deployments have %d and %d Pods, and minReadySeconds of %d and %d", *web.Replicas, *api.Replicas, web.MinReadySeconds, api.MinReadySeconds)
		}
	})
}

func (l Loop) TestOfTwoKindsTheOtherGetsANameOnceItIsFree(t *testing.T) {
	l.testTwoKindsAtRest(t, func(f *twoKinds) {
		footest.Must(t, f.bars.Tracker().Create(footest.FoosResource, footest.Foo("late", footest.WithChildName("web"), footest.WithFooUID("uid-late")), footest.Namespace))
		f.expectWrites("of a Bar: update foos/status")
		const conflict = `False DeploymentConflict: Deployment "web" belongs to "Foo" "a": choose another spec.deploymentName, or delete the owner`
		if got := f.readyOf(f.bars, "late"); got != conflict {
			t.Errorf("the condition Ready is %s", got)
		}
		advance(time.Hour)
		f.expectWrites()
		f.DeleteFoo("a")
		f.DeleteChild("web")
		synctest.Wait()
		f.expectControllers(map[string]string{"web": "Bar late", "api": "Bar b"})
	})
}
