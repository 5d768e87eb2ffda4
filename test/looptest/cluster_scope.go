// SPDX-License-Identifier: Apache-2.0

package looptest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// testTenants runs a test of a cluster-scoped kind: an owner has a Namespace, spec.deploymentName, and in it a
// ConfigMap.
func (l Loop) testTenants(t *testing.T, body func(f *fixture)) {
	t.Helper()
	labeled := func(object metav1.Object) { object.SetLabels(map[string]string{"tenant": "a"}) }
	namespace := plan.Row[*samplev1alpha1.Foo, *corev1.Namespace]{
		Kind: "Namespace", Resource: namespaces, NamedBy: "spec.deploymentName", Blocks: true,
		Name:      func(tenant *samplev1alpha1.Foo) string { return tenant.Spec.DeploymentName },
		Namespace: func(*samplev1alpha1.Foo) string { return "" },
		SetOwned:  func(namespace *corev1.Namespace, _ *samplev1alpha1.Foo, _ *plan.View) { labeled(namespace) },
		Keep:      func(kept, found *corev1.Namespace) { kept.Labels = found.Labels },
	}
	settings := plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]{
		Kind: "ConfigMap", Resource: configMaps,
		Name:      func(*samplev1alpha1.Foo) string { return "settings" },
		Namespace: func(tenant *samplev1alpha1.Foo) string { return tenant.Spec.DeploymentName },
		SetOwned:  func(settings *corev1.ConfigMap, _ *samplev1alpha1.Foo, _ *plan.View) { labeled(settings) },
		Keep:      func(kept, found *corev1.ConfigMap) { kept.Labels = found.Labels },
	}
	tenant := footest.Foo("a")
	tenant.Namespace = ""
	l.running(t, foosWith(plan.Kind{ClusterScoped: true}, func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
		return []table.Row[*samplev1alpha1.Foo]{
			table.Owns(namespace, clients.KubeInformers.Core().V1().Namespaces().Informer(), table.ClusterScoped(clients.Kube.CoreV1().Namespaces)),
			configMapsOf(clients, settings),
		}
	}), world(tenant), body)
}

func (f *fixture) tenant() *samplev1alpha1.Foo {
	f.T.Helper()
	object, err := f.Foos.Tracker().Get(footest.FoosResource, "", "a")
	footest.Must(f.T, err)
	return object.(*samplev1alpha1.Foo)
}

func (f *fixture) expectTenant(why, reason, contains string) {
	f.T.Helper()
	ready := footest.ReadyOf(f.tenant().Status)
	if ready.Reason != reason || !strings.Contains(ready.Message, contains) {
		f.T.Errorf("%s: it is %s: %s", why, ready.Reason, ready.Message)
	}
}

// named returns an object without a namespace, or in the one that has its owner's objects.
func (f *fixture) named(resource, namespace, name string) (footest.Object, bool) {
	f.T.Helper()
	object, err := f.Kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource(resource), namespace, name)
	if err != nil {
		return nil, false
	}
	return object.(footest.Object), true
}

func (l Loop) TestAClusterScopedOwnerOwnsByReference(t *testing.T) {
	l.testTenants(t, func(f *fixture) {
		f.expectTenant("all is there", plan.ReasonAvailable, "")
		for _, at := range [][3]string{{"namespaces", "", "web"}, {"configmaps", "web", "settings"}} {
			object, found := f.named(at[0], at[1], at[2])
			if !found || !metav1.IsControlledBy(object, f.tenant()) {
				f.T.Fatalf("%v: found %v, %v", at, found, object)
			}
			object.SetLabels(nil)
			f.store(object)
			advance(time.Minute)
			if repaired, _ := f.named(at[0], at[1], at[2]); repaired.GetLabels()["tenant"] != "a" {
				f.T.Errorf("%v is not repaired", at)
			}
		}
		footest.Must(f.T, f.API.Delete(f.Kube.Tracker(), configMaps, "web", "settings"))
		advance(time.Minute)
		if _, found := f.named("configmaps", "web", "settings"); !found {
			f.T.Error("the ConfigMap is not created again")
		}
	})
}

// The same name in another namespace is another object.
func (l Loop) TestAnOwnersChildrenMoveToAnotherNamespace(t *testing.T) {
	l.testTenants(t, func(f *fixture) {
		tenant := f.tenant()
		tenant.Spec.DeploymentName = "api"
		tenant.Generation++
		f.Put(tenant)
		advance(time.Minute)
		for _, at := range [][3]string{{"namespaces", "", "api"}, {"configmaps", "api", "settings"}} {
			if _, found := f.named(at[0], at[1], at[2]); !found {
				f.T.Errorf("%v is missing", at)
			}
		}
		for _, at := range [][3]string{{"namespaces", "", "web"}, {"configmaps", "web", "settings"}} {
			if _, found := f.named(at[0], at[1], at[2]); found {
				f.T.Errorf("%v is left over", at)
			}
		}
		f.expectTenant("all is there", plan.ReasonAvailable, "")
	})
}

func (l Loop) TestANamespaceThatExistsIsNotTaken(t *testing.T) {
	l.testTenants(t, func(f *fixture) {
		f.store(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "api", UID: "theirs"}})
		tenant := f.tenant()
		tenant.Spec.DeploymentName = "api"
		tenant.Generation++
		f.Put(tenant)
		advance(time.Minute)
		f.expectTenant("it belongs to nobody", "NamespaceConflict", "kubectl annotate namespace api samplecontroller.k8s.io/adopt-by=a")
		if _, found := f.named("configmaps", "api", "settings"); found {
			f.T.Error("a ConfigMap is created in a Namespace of others")
		}
		if _, found := f.named("namespaces", "", "web"); !found {
			f.T.Error("the earlier Namespace is deleted before there is another")
		}
		theirs, _ := f.named("namespaces", "", "api")
		theirs.SetAnnotations(map[string]string{f.kind.AdoptBy(): "a"})
		f.store(theirs)
		advance(time.Minute)
		f.expectTenant("it was handed over", plan.ReasonAvailable, "")
	})
}

// A Namespace that is being deleted takes long, and what is in it goes first.
func (l Loop) TestANamespaceIsTakenAway(t *testing.T) {
	l.testTenants(t, func(f *fixture) {
		namespace, _ := f.named("namespaces", "", "web")
		namespace.SetDeletionTimestamp(new(metav1.Now()))
		namespace.SetFinalizers([]string{"kubernetes"})
		f.store(namespace)
		footest.Must(f.T, f.API.Delete(f.Kube.Tracker(), configMaps, "web", "settings"))
		advance(time.Minute)
		f.expectTenant("it is being deleted", plan.ReasonTerminating, "will be recreated once it is gone")
		footest.ExpectEqual(f.T, "the creations in it", 0, f.Count("create configmaps"))
		footest.Must(f.T, f.API.Delete(f.Kube.Tracker(), namespaces, "", "web"))
		advance(time.Minute)
		f.expectTenant("all is there again", plan.ReasonAvailable, "")
		if meta.IsStatusConditionTrue(f.tenant().Status.Conditions, plan.ConditionStalled) {
			f.T.Error("it is stalled")
		}
	})
}

func (l Loop) TestNamespacesOfRowsAreChecked(t *testing.T) {
	row := shards(plain)
	elsewhere := row
	elsewhere.Namespace = func(*samplev1alpha1.Foo) string { return "elsewhere" }
	for want, err := range map[string]error{
		`the row of the kind "ConfigMap" lacks Namespace, because a cluster-scoped Foo has none`:                                                         row.Of(&plan.Kind{Name: "Foo", ClusterScoped: true}).Check(),
		`the row of the kind "ConfigMap" has Namespace, where Kubernetes does not follow the references of a namespaced Foo, whose kind lacks Finalizer`: elsewhere.Of(&plan.Kind{Name: "Foo"}).Check(),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, not %q", err, want)
		}
	}
}
