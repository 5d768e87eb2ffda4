// SPDX-License-Identifier: Apache-2.0

// Tests of caches that several kinds read.

package table

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/pkg/reconcile/plan"
)

// Sites and Shops each own a ConfigMap with the name spec.deploymentName. Their Go type is that of Foos.
var (
	siteKind = plan.Kind{Name: "Site", Resource: schema.GroupVersionResource{Group: "sites.dev", Version: "v1", Resource: "sites"}}
	shopKind = plan.Kind{Name: "Shop", Resource: schema.GroupVersionResource{Group: "shops.dev", Version: "v1", Resource: "shops"}}
)

// sharedCache is the cache of an informer, and what is kept in it.
type sharedCache struct {
	t         *testing.T
	informer  cache.SharedIndexInformer
	transform cache.TransformFunc
}

func newCache(t *testing.T, of plan.Object) *sharedCache {
	t.Helper()
	return &sharedCache{t: t, informer: cache.NewSharedIndexInformer(&cache.ListWatch{}, of, 0, cache.Indexers{})}
}

// wrapped is an informer that records its transform.
type wrapped struct {
	cache.SharedIndexInformer

	of *sharedCache
}

func (w *wrapped) SetTransform(transform cache.TransformFunc) error {
	w.of.transform = transform
	return w.SharedIndexInformer.SetTransform(transform)
}

// Informer returns a different value for the one informer each time, as a factory may.
func (s *sharedCache) Informer() cache.SharedIndexInformer { return &wrapped{s.informer, s} }

// put stores an object as the informer would, and returns what is kept of it.
func (s *sharedCache) put(object any) any {
	s.t.Helper()
	kept, err := s.transform(object)
	if err == nil {
		err = s.informer.GetIndexer().Add(kept)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return kept
}

func foos(informer cache.SharedIndexInformer, of plan.Kind, rows ...Row[*samplev1alpha1.Foo]) *Kind {
	return Of(of, informer, clientset.New(nil).SamplecontrollerV1alpha1().Foos, rows...)
}

// ownsKey is a row of ConfigMaps with one key.
func ownsKey(informer cache.SharedIndexInformer, key string) Row[*samplev1alpha1.Foo] {
	return Owns(configMapWith(key), informer, kubernetes.New(nil).CoreV1().ConfigMaps)
}

func configMapWith(key string) plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap] {
	return plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]{
		Kind: "ConfigMap", Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), NamedBy: "spec.deploymentName",
		Name: func(owner *samplev1alpha1.Foo) string { return owner.Spec.DeploymentName },
		SetOwned: func(child *corev1.ConfigMap, owner *samplev1alpha1.Foo, _ *plan.View) {
			child.Data = map[string]string{key: owner.Name}
		},
		Keep: func(kept, found *corev1.ConfigMap) { kept.Data = map[string]string{key: found.Data[key]} },
	}
}

func owner(name string) *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name},
	}
}

// childOf returns a ConfigMap with the keys of both kinds and one of nobody's.
func childOf(kind *plan.Kind, name string) *corev1.ConfigMap {
	child := orphan(name)
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner(name), kind.Resource.GroupVersion().WithKind(kind.Name))}
	return child
}

func orphan(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{"is": "of nobody"}},
		Data:       map[string]string{"site": name, "shop": name, "other": name},
	}
}

// twoKinds are kinds that share the cache of their children.
type twoKinds struct {
	sites, shops                   *Kind
	siteCache, shopCache, children *sharedCache
}

// testBothOrders calls a test with each of the kinds as the first.
func testBothOrders(t *testing.T, body func(t *testing.T, of *twoKinds)) {
	t.Helper()
	for _, first := range []string{"sites", "shops"} {
		t.Run(first+" first", func(t *testing.T) {
			of := &twoKinds{
				siteCache: newCache(t, &samplev1alpha1.Foo{}), shopCache: newCache(t, &samplev1alpha1.Foo{}), children: newCache(t, &corev1.ConfigMap{}),
			}
			of.sites = foos(of.siteCache.Informer(), siteKind, ownsKey(of.children.Informer(), "site"))
			of.shops = foos(of.shopCache.Informer(), shopKind, ownsKey(of.children.Informer(), "shop"))
			kinds := []*Kind{of.sites, of.shops}
			if first == "shops" {
				slices.Reverse(kinds)
			}
			if err := Prepare(kinds...); err != nil {
				t.Fatal(err)
			}
			body(t, of)
		})
	}
}

func TestEachKindFindsAndKeepsItsOwnChildrenInASharedCache(t *testing.T) {
	testBothOrders(t, func(t *testing.T, of *twoKinds) {
		of.children.put(childOf(&siteKind, "a"))
		of.children.put(childOf(&shopKind, "b"))
		for key, want := range map[string]struct {
			kind *Kind
			name string
		}{"site": {of.sites, "a"}, "shop": {of.shops, "b"}} {
			for _, name := range []string{"a", "b"} {
				found := want.kind.ControlledBy(want.kind.Rows[0], owner(name))
				if name != want.name {
					if len(found) > 0 {
						t.Errorf("the %s %s controls %v", key, name, found)
					}
					continue
				}
				if len(found) != 1 {
					t.Errorf("the %s %s has %d children", key, name, len(found))
					continue
				}
				child := found[0].(*corev1.ConfigMap)
				if !maps.Equal(child.Data, map[string]string{key: name}) || child.Labels != nil {
					t.Errorf("of the child of the %s, the cache keeps the data %v and the labels %v", key, child.Data, child.Labels)
				}
				if drift := want.kind.Children[0].DescribeDrift(child, owner(name), nil); drift != "" {
					t.Errorf("the child of the %s has drifted: %s", key, drift)
				}
			}
		}
	})
}

// ready syncs an owner, without writes, and returns its action and the message of its condition Ready.
func ready(kind *Kind, of plan.Owner) (action plan.Action, message string) {
	world := kind.NewWorld(of, func(row *plan.ChildKind) plan.Found { return kind.Find(row, of) })
	for step := range world.Steps() {
		action = step.Action
		world.Record(step, step.AsFound())
	}
	return action, world.Status(metav1.Now()).GetConditions()[0].Message
}

func TestAChildOfAnotherKindIsAConflict(t *testing.T) {
	testBothOrders(t, func(t *testing.T, of *twoKinds) {
		taken := childOf(&siteKind, "a")
		taken.Annotations = map[string]string{of.shops.AdoptBy(): "a", of.sites.AdoptBy(): "a"}
		of.children.put(taken)
		const want = `ConfigMap "a" belongs to "Site" "a": choose another spec.deploymentName, or delete the owner`
		if action, message := ready(of.shops, owner("a")); action != plan.ActionLeave || message != want {
			t.Errorf("the Shop decides on %q and says: %s", action, message)
		}
		if action, _ := ready(of.sites, owner("a")); action != plan.ActionNone {
			t.Errorf("the Site decides on %q", action)
		}
		of.shopCache.put(owner("a"))
		if asking := of.shops.AskingFor(of.shops.Rows[0], cache.NewObjectName("team", "a"), 16); len(asking) != 1 {
			t.Errorf("%v wait for the name", asking)
		}
	})
}

func TestASharedCacheKeepsTheConsentForEachKind(t *testing.T) {
	testBothOrders(t, func(t *testing.T, of *twoKinds) {
		free := orphan("a")
		free.Annotations = map[string]string{of.sites.AdoptBy(): "a", of.shops.AdoptBy(): "b", "other": "a"}
		kept := of.children.put(free).(*corev1.ConfigMap)
		if want := map[string]string{of.sites.AdoptBy(): "a", of.shops.AdoptBy(): "b"}; !maps.Equal(kept.Annotations, want) || kept.Data != nil {
			t.Errorf("the cache keeps the annotations %v and the data %v", kept.Annotations, kept.Data)
		}
		if action, _ := ready(of.sites, owner("a")); action != plan.ActionAdopt {
			t.Errorf("the Site decides on %q", action)
		}
		if action, _ := ready(of.shops, owner("a")); action != plan.ActionLeave {
			t.Errorf("the Shop decides on %q", action)
		}
	})
}

// A Shop owns a Site here, of which its row keeps a part of the spec, and annotations.
func TestATypeMayBeAKindOfOwnersAndOfChildren(t *testing.T) {
	for _, first := range []string{"owners", "children"} {
		t.Run(first+" first", func(t *testing.T) {
			both := newCache(t, &samplev1alpha1.Foo{})
			sites := foos(both.Informer(), siteKind, ownsKey(newCache(t, &corev1.ConfigMap{}).Informer(), "site"))
			shops := foos(newCache(t, &samplev1alpha1.Foo{}).Informer(), shopKind, Owns(plan.Row[*samplev1alpha1.Foo, *samplev1alpha1.Foo]{
				Kind: "Site", Resource: siteKind.Resource,
				Name:     func(owner *samplev1alpha1.Foo) string { return owner.Name },
				SetOwned: func(child, owner *samplev1alpha1.Foo, _ *plan.View) { child.Spec.DeploymentName = owner.Name },
				Keep: func(kept, found *samplev1alpha1.Foo) {
					kept.Spec, kept.Annotations = samplev1alpha1.FooSpec{DeploymentName: found.Spec.DeploymentName}, found.Annotations
				},
			}, both.Informer(), clientset.New(nil).SamplecontrollerV1alpha1().Foos))
			kinds := []*Kind{sites, shops}
			if first == "children" {
				slices.Reverse(kinds)
			}
			if err := Prepare(kinds...); err != nil {
				t.Fatal(err)
			}
			sent := owner("a")
			sent.Spec.Replicas, sent.Status.ObservedGeneration = new(int32(7)), 1
			sent.Annotations = map[string]string{sites.SyncRequested(): "now", "kept": "by the row"}
			sent.OwnerReferences = childOf(&shopKind, "a").OwnerReferences
			before := maps.Clone(sent.Annotations)
			kept := both.put(sent).(*samplev1alpha1.Foo)
			if !reflect.DeepEqual(kept.Spec, sent.Spec) || !reflect.DeepEqual(kept.Status, sent.Status) || !maps.Equal(kept.Annotations, before) {
				t.Errorf("the cache keeps %+v", kept)
			}
			if found := shops.ControlledBy(shops.Rows[0], owner("a")); len(found) != 1 {
				t.Errorf("the Shop has %d Sites", len(found))
			}
			if sites.Owner(cache.NewObjectName("team", "a")) == nil || len(sites.AskingFor(sites.Rows[0], cache.NewObjectName("team", "a"), 16)) != 1 {
				t.Error("the Site is not among the owners")
			}
		})
	}
}

func TestWhatASharedCacheKeepsIsBounded(t *testing.T) {
	huge := strings.Repeat("x", 200<<10)
	testBothOrders(t, func(t *testing.T, of *twoKinds) {
		for name, change := range map[string]func(*corev1.ConfigMap){
			"an orphan":                       func(object *corev1.ConfigMap) { object.OwnerReferences = nil },
			"a child of an owner with a name": func(object *corev1.ConfigMap) { object.OwnerReferences[0].Name = huge },
			"a child of a version":            func(object *corev1.ConfigMap) { object.OwnerReferences[0].APIVersion = "sites.dev/" + huge },
			"a child of another kind":         func(object *corev1.ConfigMap) { object.OwnerReferences[0].Kind = huge },
			"a child of another group":        func(object *corev1.ConfigMap) { object.OwnerReferences[0].APIVersion = huge + "/v1" },
		} {
			object := childOf(&siteKind, "a")
			object.Annotations = map[string]string{of.sites.AdoptBy(): huge, of.shops.AdoptBy(): huge, "other": huge}
			object.Labels, object.Finalizers = map[string]string{"other": huge}, []string{huge}
			object.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: huge}}
			object.Data["other"] = huge
			change(object)
			text, err := json.Marshal(of.children.put(object))
			if err != nil || len(text) > 4<<10 {
				t.Errorf("the cache keeps %d bytes of %s (%v)", len(text), name, err)
			}
		}
	})
}

func TestATombstoneStaysOneInASharedCache(t *testing.T) {
	testBothOrders(t, func(t *testing.T, of *twoKinds) {
		tombstone := cache.DeletedFinalStateUnknown{Key: "team/a"}
		if kept, err := of.children.transform(tombstone); err != nil || kept != any(tombstone) {
			t.Errorf("got %v, %v", kept, err)
		}
	})
}

// Most caches have one reader. That others could share one costs those nothing.
func TestACacheOfOneReaderHasItsTransformAlone(t *testing.T) {
	owners, children := newCache(t, &samplev1alpha1.Foo{}), newCache(t, &corev1.ConfigMap{})
	sites := foos(owners.Informer(), siteKind, ownsKey(children.Informer(), "site"))
	if err := Prepare(sites); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct{ prepared, itsOwn cache.TransformFunc }{
		"owners":   {owners.transform, sites.Transform},
		"children": {children.transform, sites.Children[0].Transform},
	} {
		if reflect.ValueOf(of.prepared).Pointer() != reflect.ValueOf(of.itsOwn).Pointer() {
			t.Errorf("the cache of the %s has another transform", name)
		}
	}
}

func TestPrepareRefuses(t *testing.T) {
	children := func(t *testing.T) cache.SharedIndexInformer {
		t.Helper()
		return newCache(t, &corev1.ConfigMap{}).Informer()
	}
	owners := func(t *testing.T) cache.SharedIndexInformer {
		t.Helper()
		return newCache(t, &samplev1alpha1.Foo{}).Informer()
	}
	row := func(t *testing.T, change func(row *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap])) Row[*samplev1alpha1.Foo] {
		t.Helper()
		changed := configMapWith("site")
		change(&changed)
		return Owns(changed, children(t), kubernetes.New(nil).CoreV1().ConfigMaps)
	}
	newVersion := siteKind
	newVersion.Resource.Version = "v2"
	for want, kinds := range map[string]func(t *testing.T) []*Kind{
		"two kinds are named Site.sites.dev": func(t *testing.T) []*Kind {
			t.Helper()
			return []*Kind{foos(owners(t), siteKind), foos(owners(t), shopKind), foos(owners(t), newVersion)}
		},
		"the table of Site has two rows for configmaps": func(t *testing.T) []*Kind {
			t.Helper()
			return []*Kind{foos(owners(t), siteKind, ownsKey(children(t), "a"), ownsKey(children(t), "b"))}
		},
		"the table of Shop has two rows for configmaps": func(t *testing.T) []*Kind { // of two versions
			t.Helper()
			return []*Kind{foos(owners(t), shopKind, ownsKey(children(t), "a"),
				row(t, func(row *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]) { row.Resource.Version = "v2" }))}
		},
		`the row of the kind "ConfigMap" lacks Keep`: func(t *testing.T) []*Kind {
			t.Helper()
			return []*Kind{foos(owners(t), siteKind, row(t, func(row *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]) { row.Keep = nil }))}
		},
		"an informer has the index controllerUID/Site.sites.dev already: prepare all kinds in one call": func(t *testing.T) []*Kind {
			t.Helper()
			shared := newCache(t, &corev1.ConfigMap{})
			if err := Prepare(foos(owners(t), siteKind, ownsKey(shared.Informer(), "site"))); err != nil {
				t.Fatal(err)
			}
			return []*Kind{foos(owners(t), shopKind, ownsKey(shared.Informer(), "shop"))}
		},
		"the kind Site isn't the program's own and has a Finalizer: its objects would hang in their deletion without the program": func(t *testing.T) []*Kind {
			t.Helper()
			held := siteKind
			held.Group, held.Finalizer = "shops.dev", "shops.dev/held"
			return []*Kind{OfOthers(held, func(_, _ *corev1.ConfigMap) {}, children(t), kubernetes.New(nil).CoreV1().ConfigMaps)}
		},
	} {
		t.Run(want, func(t *testing.T) {
			refused := kinds(t)
			if err := Prepare(refused...); err == nil || err.Error() != want {
				t.Errorf("the error is %v", err)
			}
			if indexes := refused[0].Owners.Cache.GetIndexers(); len(indexes) > 0 {
				t.Errorf("a refused kind has the indexes %v", indexes)
			}
		})
	}
}
