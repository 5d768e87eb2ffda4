// SPDX-License-Identifier: Apache-2.0

package looptest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/kinds"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

const costCenter = "acme.dev/cost-center"

// namespacesOfTeams declares a controller of Namespaces: one with the label "team" has an annotation, and in it a
// ConfigMap.
func namespacesOfTeams(clients kinds.Clients) *table.Kind {
	client, informer := table.ClusterScoped(clients.Kube.CoreV1().Namespaces), clients.KubeInformers.Core().V1().Namespaces().Informer()
	return table.OfOthers(plan.Kind{Name: "Namespace", Resource: namespaces, ClusterScoped: true, Group: "acme.dev"},
		func(kept, found *corev1.Namespace) {
			if team := found.Labels["team"]; team != "" {
				kept.Labels = map[string]string{"team": team}
			}
		}, informer, client,
		table.Sets(plan.Row[*corev1.Namespace, *corev1.Namespace]{
			Kind: "Namespace", Resource: namespaces,
			SetOwned: func(namespace, of *corev1.Namespace, _ *plan.View) {
				if team := of.Labels["team"]; team != "" {
					metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, costCenter, "cc-"+team)
				}
			},
			Keep: func(kept, found *corev1.Namespace) {
				if value, ok := found.Annotations[costCenter]; ok {
					metav1.SetMetaDataAnnotation(&kept.ObjectMeta, costCenter, value)
				}
			},
		}, informer, client),
		configMapsOf(clients, plan.Row[*corev1.Namespace, *corev1.ConfigMap]{
			Kind: "ConfigMap", Resource: configMaps,
			Name:      func(*corev1.Namespace) string { return "team" },
			Wanted:    func(namespace *corev1.Namespace) bool { return namespace.Labels["team"] != "" },
			Namespace: (*corev1.Namespace).GetName,
			SetOwned: func(settings *corev1.ConfigMap, namespace *corev1.Namespace, _ *plan.View) {
				settings.Data = map[string]string{"team": namespace.Labels["team"]}
			},
			Keep: func(kept, found *corev1.ConfigMap) { kept.Data = found.Data },
		}))
}

func (l Loop) testNamespaces(t *testing.T, body func(f *fixture)) {
	t.Helper()
	l.test(t, namespacesOfTeams, nil, func(f *fixture) {
		defer f.start()()
		f.store(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1", Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "kept"}}})
		f.store(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "2"}})
		advance(time.Minute)
		f.TakeWrites()
		body(f)
		advance(time.Hour)
		f.TakeWrites()
		advance(time.Hour)
		footest.ExpectEqual(t, "the calls at rest", 0, len(f.Actions()))
		f.ExpectEvents()
	})
}

func (f *fixture) namespace(name string) *corev1.Namespace {
	f.T.Helper()
	object, found := f.named("namespaces", "", name)
	if !found {
		f.T.Fatalf("there is no Namespace %s", name)
	}
	return object.(*corev1.Namespace)
}

func (l Loop) TestOthersObjectsAreAnnotated(t *testing.T) {
	l.testNamespaces(t, func(f *fixture) {
		expect := func(why, name string, annotations map[string]string) {
			f.T.Helper()
			footest.ExpectEqual(f.T, why, annotations, f.namespace(name).Annotations)
		}
		expect("a team's", "shop", map[string]string{"note": "kept", costCenter: "cc-a"})
		expect("no team's", "kube-system", nil)
		if of, found := f.named("configmaps", "shop", "team"); !found || !metav1.IsControlledBy(of, f.namespace("shop")) {
			f.T.Errorf("found %v: %v", found, of)
		}
		for i := range 8 { // the label is the spec, so that this is no fight
			shop := f.namespace("shop")
			shop.Labels["team"] = fmt.Sprint("b", i)
			f.store(shop)
			expect("another team's", "shop", map[string]string{"note": "kept", costCenter: fmt.Sprint("cc-b", i)})
		}
		f.TakeWrites()
		shop := f.namespace("shop")
		shop.Annotations["note"], shop.Labels["other"] = "new", "new"
		f.store(shop)
		f.ExpectWrites()
		delete(shop.Annotations, costCenter)
		f.store(shop)
		f.ExpectWrites("patch namespaces")
		shop = f.namespace("shop")
		delete(shop.Labels, "team")
		f.store(shop)
		if _, found := f.named("configmaps", "shop", "team"); found {
			f.T.Error("the ConfigMap of a Namespace without a team is left over")
		}
		f.ExpectEvents()
	})
}

func (l Loop) TestAFightOverOthersObjects(t *testing.T) {
	l.testNamespaces(t, func(f *fixture) {
		for range 20 {
			shop := f.namespace("shop")
			delete(shop.Annotations, costCenter)
			f.store(shop)
		}
		if writes := len(f.TakeWrites()); writes > 8 {
			f.T.Errorf("%d repairs of what is undone each second", writes)
		}
		advance(10 * time.Minute)
		events := f.Recorded()
		if text := strings.Join(events, "\n"); !strings.Contains(text, "Warning NamespaceFailed") || !strings.Contains(text, "Normal Available") {
			f.T.Errorf("the Events are %q", events)
		}
	})
}

// What keeps an object from having what it should is told once, in an Event.
func (l Loop) TestAConflictOfOthersObjectsIsAnEvent(t *testing.T) {
	l.testNamespaces(t, func(f *fixture) {
		f.store(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: "kube-system", UID: "theirs"}})
		system := f.namespace("kube-system")
		system.Labels = map[string]string{"team": "a"}
		f.store(system)
		advance(time.Hour)
		events := f.Recorded()
		if len(events) != 1 || !strings.HasPrefix(events[0], `Warning ConfigMapConflict ConfigMap "team" exists and has no controller`) {
			f.T.Errorf("the Events are %q", events)
		}
		footest.ExpectEqual(f.T, "the annotation, all the same", "cc-a", f.namespace("kube-system").Annotations[costCenter])
		footest.Must(f.T, f.API.Delete(f.Kube.Tracker(), configMaps, "kube-system", "team"))
		advance(time.Minute)
		if events := f.Recorded(); len(events) == 0 || !strings.HasPrefix(events[len(events)-1], "Normal Available") {
			f.T.Errorf("the Events are %q", events)
		}
	})
}
