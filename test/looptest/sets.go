// SPDX-License-Identifier: Apache-2.0

// Sets of children.

package looptest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	secrets    = corev1.SchemeGroupVersion.WithResource("secrets")
)

// others are what the API server of these tests stores besides the program's own.
var others = []*footest.Kind{
	(&rows.Row[footest.Object, *corev1.ConfigMap]{Kind: "ConfigMap", Resource: configMaps}).Untyped(),
	(&rows.Row[footest.Object, *corev1.Secret]{Kind: "Secret", Resource: secrets}).Untyped(),
	(&rows.Row[footest.Object, *corev1.Namespace]{Kind: "Namespace", Resource: namespaces}).Untyped(),
}

// shards declares a set: for each replica of a Foo a ConfigMap, whose label "ready" says whether it is. "stored"
// is the number of replicas when it was written.
func shards(change func(row *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap])) plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap] {
	row := plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]{
		Kind: "ConfigMap", Resource: configMaps, NamedBy: "spec.deploymentName",
		Names: func(foo *samplev1alpha1.Foo) (names []string) {
			for i := range *foo.Spec.Replicas {
				names = append(names, fmt.Sprintf("%s-%d", foo.Spec.DeploymentName, i))
			}
			return names
		},
		SetOwned: func(shard *corev1.ConfigMap, _ *samplev1alpha1.Foo, _ *plan.View) {
			metav1.SetMetaDataLabel(&shard.ObjectMeta, "owned", "yes")
		},
		Keep: func(kept, found *corev1.ConfigMap) { kept.Labels, kept.Annotations = found.Labels, found.Annotations },
		Judge: func(shard *corev1.ConfigMap) plan.Readiness {
			if shard.Labels["ready"] != "yes" {
				return plan.NotReady(plan.ReasonProgressing, "ConfigMap %q is not ready", shard.Name)
			}
			return plan.Ready("%s is ready", shard.Name)
		},
		Serves: func(shard *corev1.ConfigMap) bool { return shard.Labels["ready"] == "yes" },
		Report: func(foo *samplev1alpha1.Foo, shard *corev1.ConfigMap) {
			if shard.Labels["ready"] == "yes" {
				foo.Status.AvailableReplicas++
			}
		},
	}
	change(&row)
	return row
}

// testRow runs a test of Foos that have these rows.
func (l Loop) testRow(t *testing.T, declare func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo], foo *samplev1alpha1.Foo, body func(f *fixture)) {
	t.Helper()
	l.running(t, foosWith(plan.Kind{}, declare), world(foo), body)
}

// foosWith declares Foos with these rows.
func foosWith(kind plan.Kind, rows func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo]) func(clients kinds.Clients) *table.Kind {
	kind.Name, kind.Resource = "Foo", footest.FoosResource
	return func(clients kinds.Clients) *table.Kind {
		informer := clients.CustomInformers.Samplecontroller().V1alpha1().Foos().Informer()
		return table.Of(kind, informer, clients.Custom.SamplecontrollerV1alpha1().Foos, rows(clients)...)
	}
}

// configMapsOf is a row of ConfigMaps with its informer and client.
func configMapsOf[F plan.Object](clients kinds.Clients, row plan.Row[F, *corev1.ConfigMap]) table.Row[F] {
	return table.Owns(row, clients.KubeInformers.Core().V1().ConfigMaps().Informer(), clients.Kube.CoreV1().ConfigMaps)
}

func (l Loop) testShards(t *testing.T, change func(row *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]), replicas int32, body func(f *fixture)) {
	t.Helper()
	l.testRow(t, func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
		return []table.Row[*samplev1alpha1.Foo]{configMapsOf(clients, shards(change))}
	}, footest.Foo("a", footest.WithReplicas(replicas)), body)
}

func plain(*plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]) {}

func oneAtATime(row *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]) { row.OneAtATime = true }

// shardNames returns the names of the ConfigMaps that exist.
func (f *fixture) shardNames() (names []string) {
	f.T.Helper()
	list, err := f.Kube.Tracker().List(configMaps, corev1.SchemeGroupVersion.WithKind("ConfigMap"), footest.Namespace)
	footest.Must(f.T, err)
	for _, shard := range list.(*corev1.ConfigMapList).Items {
		names = append(names, shard.Name)
	}
	slices.Sort(names)
	return names
}

func (f *fixture) expectShards(why string, want ...string) {
	f.T.Helper()
	footest.ExpectEqual(f.T, why, want, f.shardNames())
}

func (f *fixture) shard(name string) *corev1.ConfigMap {
	f.T.Helper()
	object, err := f.Kube.Tracker().Get(configMaps, footest.Namespace, name)
	footest.Must(f.T, err)
	return object.(*corev1.ConfigMap)
}

// becomeReady makes ConfigMaps ready, and lets the controller act.
func (f *fixture) becomeReady(names ...string) {
	f.T.Helper()
	for _, name := range names {
		shard := f.shard(name)
		metav1.SetMetaDataLabel(&shard.ObjectMeta, "ready", "yes")
		f.store(shard)
	}
	advance(time.Minute)
}

// store stores an object as a user does.
func (f *fixture) store(object footest.Object) {
	f.T.Helper()
	f.Put(object)
	advance(time.Second)
}

func (f *fixture) respec(change func(spec *samplev1alpha1.FooSpec)) {
	f.T.Helper()
	foo := f.StoredFoo("a")
	change(&foo.Spec)
	foo.Generation++
	f.Put(foo)
	advance(time.Second)
}

func scaleTo(replicas int32) func(spec *samplev1alpha1.FooSpec) {
	return func(spec *samplev1alpha1.FooSpec) { spec.Replicas = new(replicas) }
}

func (l Loop) TestASetGrowsAndShrinksTheLastFirst(t *testing.T) {
	l.testShards(t, plain, 2, func(f *fixture) {
		f.expectShards("all are created at once", "web-0", "web-1")
		f.ExpectReady("a", "False Progressing of 1")
		f.becomeReady("web-0", "web-1")
		f.ExpectReady("a", "True Available of 1")
		f.respec(scaleTo(11))
		f.becomeReady(f.shardNames()...)
		f.TakeWrites()
		var deleted []string
		synctest.Wait()
		f.On("delete", "configmaps", func(action clienttesting.Action) error {
			deleted = append(deleted, action.(clienttesting.DeleteAction).GetName())
			return nil
		})
		f.respec(scaleTo(1))
		footest.ExpectEqual(f.T, "the deletions", strings.Fields("web-10 web-9 web-8 web-7 web-6 web-5 web-4 web-3 web-2 web-1"), deleted)
		f.ExpectReady("a", "True Available of 3")
		if available := f.StoredFoo("a").Status.AvailableReplicas; available != 1 {
			f.T.Errorf("the status counts %d", available)
		}
	})
}

func (l Loop) TestARenamedSetStaysInService(t *testing.T) {
	l.testShards(t, plain, 2, func(f *fixture) {
		f.becomeReady("web-0", "web-1")
		f.respec(func(spec *samplev1alpha1.FooSpec) { spec.DeploymentName = "api" })
		f.expectShards("the new ones are not ready", "api-0", "api-1", "web-0", "web-1")
		if message := footest.ReadyOf(f.StoredFoo("a").Status).Message; !strings.Contains(message, `"web-0" stays in service`) {
			f.T.Errorf("the message is %q", message)
		}
		f.becomeReady("api-0")
		f.expectShards("one is not ready", "api-0", "api-1", "web-0", "web-1")
		f.becomeReady("api-1")
		f.expectShards("all are ready", "api-0", "api-1")
		f.ExpectReady("a", "True Available of 2")
	})
}

// A set that shrinks because its last is broken does not wait for that one.
func (l Loop) TestASetShrinksWhileItsLastIsNotReady(t *testing.T) {
	l.testShards(t, oneAtATime, 3, func(f *fixture) {
		f.becomeReady("web-0")
		f.becomeReady("web-1")
		f.respec(scaleTo(2))
		f.expectShards("the last is not ready", "web-0", "web-1")
		f.ExpectReady("a", "True Available of 2")
	})
}

func (l Loop) TestARefusedOneOfASetDoesNotHoldUpTheOthers(t *testing.T) {
	refused := apierrors.NewForbidden(configMaps.GroupResource(), "web-1", nil)
	l.testShards(t, plain, 3, func(f *fixture) {
		f.becomeReady("web-0", "web-1", "web-2")
		synctest.Wait()
		f.On("create", "configmaps", func(action clienttesting.Action) error {
			if action.(clienttesting.CreateAction).GetObject().(metav1.Object).GetName() == "api-1" {
				return refused
			}
			return nil
		})
		f.respec(func(spec *samplev1alpha1.FooSpec) { spec.DeploymentName = "api" })
		f.expectShards("one is refused", "api-0", "api-2", "web-0", "web-1", "web-2")
		f.becomeReady("api-0", "api-2")
		ready := f.ExpectReady("a", "False ConfigMapFailed of 2")
		if !strings.Contains(ready.Message, "web-1") {
			f.T.Errorf("the message is %q", ready.Message)
		}
		f.respec(scaleTo(1))
		f.expectShards("the refused one is no longer wanted", "api-0")
	})
}

func (l Loop) TestASetNamesEachOnce(t *testing.T) {
	twice := func(row *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]) {
		row.Names = func(foo *samplev1alpha1.Foo) []string {
			return []string{foo.Spec.DeploymentName, foo.Spec.DeploymentName}
		}
	}
	l.testShards(t, twice, 2, func(f *fixture) {
		f.becomeReady("web")
		f.expectShards("one", "web")
		ready := f.ExpectReady("a", "False ConfigMapConflict of 1")
		footest.ExpectEqual(f.T, "the message", `The Foo wants ConfigMap "web" twice: change spec.deploymentName`, ready.Message)
	})
}

// TestNothingIsRememberedOfASetAtRest would fail if what has left a set stayed in memory.
func (l Loop) TestNothingIsRememberedOfASetAtRest(t *testing.T) {
	l.testShards(t, plain, 3, func(f *fixture) {
		f.becomeReady("web-0", "web-1", "web-2")
		f.respec(func(spec *samplev1alpha1.FooSpec) { spec.DeploymentName = "api" })
		f.becomeReady("api-0", "api-1", "api-2")
		advance(time.Hour)
		f.becomeReady("api-0") // so that it is synced again, as at a resync
		f.expectForgotten()
	})
}
