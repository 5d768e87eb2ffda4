// SPDX-License-Identifier: Apache-2.0

// Children where Kubernetes does not follow owner references: marks, and the finalizer.

package looptest

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

const grantFinalizer = "samplecontroller.k8s.io/grants"

// grants declares a kind whose objects have a ConfigMap "grant" in the namespace spec.deploymentName.
func grants(changes ...func(grant *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap])) func(clients kinds.Clients) *table.Kind {
	grant := plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]{
		Kind: "ConfigMap", Resource: configMaps, NamedBy: "spec.deploymentName",
		Name:      func(*samplev1alpha1.Foo) string { return "grant" },
		Namespace: func(foo *samplev1alpha1.Foo) string { return foo.Spec.DeploymentName },
		SetOwned: func(grant *corev1.ConfigMap, foo *samplev1alpha1.Foo, _ *plan.View) {
			grant.Data = map[string]string{"to": foo.Namespace}
		},
		Keep: func(kept, found *corev1.ConfigMap) { kept.Data = found.Data },
	}
	for _, change := range changes {
		change(&grant)
	}
	return foosWith(plan.Kind{Finalizer: grantFinalizer}, func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
		return []table.Row[*samplev1alpha1.Foo]{configMapsOf(clients, grant)}
	})
}

// runGrants runs a test of the Foo "a" that has its grant.
func (l Loop) runGrants(t *testing.T, body func(f *fixture)) {
	t.Helper()
	l.running(t, grants(), world(footest.Foo("a")), func(f *fixture) {
		f.ExpectReady("a", "True Available of 1")
		body(f)
	})
}

// grant returns the ConfigMap in a namespace, or nil.
func (f *fixture) grant(namespace string) *corev1.ConfigMap {
	f.T.Helper()
	if object, found := f.named("configmaps", namespace, "grant"); found {
		return object.(*corev1.ConfigMap)
	}
	return nil
}

func (l Loop) TestChildrenElsewhereHaveMarks(t *testing.T) {
	l.test(t, grants(), world(footest.Foo("a")), func(f *fixture) {
		footest.Must(t, f.sync())
		f.ExpectWrites("patch foos")
		defer f.start()()
		advance(time.Minute)
		f.ExpectReady("a", "True Available of 1")
		grant := f.grant("web")
		if uid, key := grant.Labels["samplecontroller.k8s.io/owner-uid"], grant.Annotations["samplecontroller.k8s.io/owner"]; uid != "uid-a" || key != "team-a/a" || len(grant.OwnerReferences) > 0 {
			t.Errorf("it has the marks %q and %q, and %d references", uid, key, len(grant.OwnerReferences))
		}
		f.TakeWrites()
		f.beginDeletion()
		advance(time.Minute)
		if f.grant("web") != nil || !f.isGone() {
			t.Errorf("the grant: %v; whether the Foo is gone: %v", f.grant("web"), f.isGone())
		}
		f.ExpectWrites("delete configmaps", writeStatus, "patch foos")
	})
}

func (l Loop) TestADriftElsewhereIsRepaired(t *testing.T) {
	l.runGrants(t, func(f *fixture) {
		for _, change := range []func(grant *corev1.ConfigMap){
			func(grant *corev1.ConfigMap) { grant.Data = nil },
			func(grant *corev1.ConfigMap) { grant.Annotations = nil },
		} {
			grant := f.grant("web")
			change(grant)
			f.store(grant)
			advance(time.Minute)
			grant = f.grant("web")
			footest.ExpectEqual(t, "the annotation", "team-a/a", grant.Annotations["samplecontroller.k8s.io/owner"])
			footest.ExpectEqual(t, "the data", map[string]string{"to": "team-a"}, grant.Data)
		}
	})
}

func (l Loop) TestAChildMovesToAnotherNamespace(t *testing.T) {
	l.runGrants(t, func(f *fixture) {
		f.respec(func(spec *samplev1alpha1.FooSpec) { spec.DeploymentName = "api" })
		advance(time.Minute)
		if f.grant("api") == nil || f.grant("web") != nil {
			t.Errorf("the new one: %v, the old one: %v", f.grant("api"), f.grant("web"))
		}
		f.ExpectReady("a", "True Available of 2")
	})
}

// What the cache lacks, because a controller crashed right after it wrote it, keeps the owner all the same.
func (l Loop) TestALiveListComesBeforeTheFinalizerGoes(t *testing.T) {
	foo := footest.Foo("a", footest.BeingDeleted)
	foo.Finalizers = []string{grantFinalizer}
	l.test(t, grants(), world(foo), func(f *fixture) {
		f.stopInformers()
		grant := markedIn("web", "uid-a", "team-a/a")
		f.store(grant)
		f.TakeWrites()
		if err := f.sync(); !errors.Is(err, failure.ErrBehind) {
			t.Errorf("the error is %v", err)
		}
		f.ExpectWrites()
		footest.Must(t, f.API.Delete(f.Kube.Tracker(), configMaps, "web", "grant"))
		footest.Must(t, f.sync())
		f.ExpectWrites("patch foos")
	})
}

func markedIn(namespace, uid, key string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "grant", Namespace: namespace, UID: "marked", Labels: map[string]string{"samplecontroller.k8s.io/owner-uid": uid},
		Annotations: map[string]string{"samplecontroller.k8s.io/owner": key},
	}}
}

// A mark counts only where a reference can't be, and only on an object without a controller.
func (l Loop) TestForgedMarks(t *testing.T) {
	for name, forge := range map[string]func(grant *corev1.ConfigMap){
		"in the owner's namespace": func(grant *corev1.ConfigMap) { grant.Namespace = footest.Namespace },
		"on another's object": func(grant *corev1.ConfigMap) {
			grant.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "x", UID: "y", Controller: new(true)}}
		},
		"with another UID": func(grant *corev1.ConfigMap) { grant.Labels["samplecontroller.k8s.io/owner-uid"] = "uid-b" },
	} {
		t.Run(name, func(t *testing.T) {
			l.runGrants(t, func(f *fixture) {
				forged := markedIn("api", "uid-a", "team-a/a")
				forge(forged)
				f.store(forged)
				advance(time.Minute)
				f.beginDeletion()
				advance(time.Hour)
				if f.grant(forged.Namespace) == nil || !f.isGone() {
					t.Errorf("the object: %v; whether the Foo is gone: %v", f.grant(forged.Namespace), f.isGone())
				}
			})
		})
	}
}

func (l Loop) TestAnObjectElsewhereIsHandedOver(t *testing.T) {
	l.runGrants(t, func(f *fixture) {
		f.store(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "grant", Namespace: "api", UID: "theirs"}})
		f.respec(func(spec *samplev1alpha1.FooSpec) { spec.DeploymentName = "api" })
		ready := f.ExpectReady("a", "False ConfigMapConflict of 2")
		const consent = "kubectl annotate -n api configmap grant samplecontroller.k8s.io/adopt-by=team-a/a"
		if !strings.Contains(ready.Message, consent) {
			t.Errorf("the message is %q", ready.Message)
		}
		theirs := f.grant("api")
		theirs.Annotations = map[string]string{f.kind.AdoptBy(): "team-a/a"}
		f.store(theirs)
		advance(time.Minute)
		f.ExpectReady("a", "True Available of 2")
		if f.grant("web") != nil || f.grant("api").UID != "theirs" {
			t.Errorf("the old one: %v, the one that was handed over: %v", f.grant("web"), f.grant("api"))
		}
	})
}

// Whoever removes the finalizer by hand leaves the children to themselves: nobody may say that they are not wanted.
func (l Loop) TestAFinalizerOfMarksThatIsRemovedByHand(t *testing.T) {
	l.runGrants(t, func(f *fixture) {
		f.DeleteFoo("a")
		advance(time.Hour)
		if f.grant("web") == nil {
			t.Fatal("the object was deleted")
		}
		f.Put(footest.Foo("a", footest.WithFooUID("uid-new")))
		advance(time.Minute)
		f.ExpectReady("a", "False ConfigMapConflict of 1")
		left := f.grant("web")
		metav1.SetMetaDataAnnotation(&left.ObjectMeta, f.kind.AdoptBy(), "team-a/a")
		f.store(left)
		advance(time.Minute)
		f.ExpectReady("a", "True Available of 1")
		footest.ExpectEqual(t, "the mark", "uid-new", f.grant("web").Labels["samplecontroller.k8s.io/owner-uid"])
	})
}
