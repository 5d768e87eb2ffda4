// SPDX-License-Identifier: Apache-2.0

// FuzzSync: single syncs of arbitrary objects, with stale caches.

package looptest

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/preview"
	"example.com/sample-controller/tools/preview/previewtest"
)

// fuzzMetrics are those of all runs, because component-base keeps each registry forever.
var fuzzMetrics = newMetrics()

// FuzzSync syncs the Foo "a" with arbitrary objects and caches that may be stale. However stale
// they are, the sync changes nothing that belongs to others, and the second sync after they
// have caught up (the first, if they were not stale) writes nothing, except that each further
// obsolete child is deleted by a sync of its own. With fresh caches, it writes what its preview
// announces.
func FuzzSync(f *testing.F, loop Loop) {
	f.Helper()
	footest.AddSeeds(f, slices.Concat(footest.FuzzSeeds, footest.StaleSeeds))
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		for _, owner := range footest.Owners {
			loop.syncUntilSilent(t, footest.NewFuzzWorld(t, owner, script, noise, words))
		}
	})
}

func (l Loop) syncUntilSilent(t *testing.T, w *footest.FuzzWorld) {
	t.Helper()
	for _, child := range w.Children {
		footest.KindOf(child).Default(child)
	}
	f := l.newFuzzFixture(t, w.Owner)
	bystander, live := footest.Like(w.Owner, footest.Foo("b")), w.Live()
	w.Owner.Rename(bystander, "old")
	world := append([]footest.Object{bystander}, live.Children...)
	if live.Foo != nil {
		world = append(world, live.Foo)
	}
	for _, object := range world {
		footest.Must(t, f.tracker.Create(footest.KindOf(object).Resource, object, footest.Namespace))
	}
	f.cacheSees(append(w.Seen(), w.Foo, bystander))

	stale := w.Stale()
	var announced *preview.Sync
	if !stale && !w.Refused() {
		stored := f.stored()
		announced = previewtest.Of(f.kind.Kind, w.Owner.Find(stored, "a"), stored)
	}
	f.pass(t, w.Foo, live.Foo, !stale, announced)
	for obsolete := len(live.Children) + 1; obsolete >= 0; obsolete-- {
		stored := f.stored()
		f.cacheSees(stored)
		// By now the caches show that a Foo was deleted or recreated.
		now := w.Owner.Find(stored, "a")
		known := cmp.Or(now, w.Foo)
		wrote := f.pass(t, known, now, true, nil)
		// A sync deletes one obsolete child of a kind.
		wrote = slices.DeleteFunc(wrote, func(call string) bool { return obsolete > 0 && strings.HasPrefix(call, "delete ") })
		if len(wrote) > 0 && !stale && !w.Refused() {
			t.Errorf("a sync without a change before it wrote: %v", wrote)
		}
		stale = false
	}
}

// pass syncs once, checks the changes, and returns the calls to the API server. known is the
// Foo in the caches, live is the Foo at the API server, or nil. announced is the preview, or
// nil.
func (f *fuzzFixture) pass(t *testing.T, known, live footest.Object, fresh bool, announced *preview.Sync) []string {
	t.Helper()
	before := f.stored()
	err := f.program.Sync(f.ctx, footest.KeyOf(known))
	after := f.stored()

	if announced != nil {
		previewtest.Check(t, announced, &f.API, f.Kube.Actions(), f.Foos.Actions())
	}
	if fresh && err != nil && !failure.IsRefusal(err) {
		t.Errorf("the sync failed with fresh caches: %v", err)
	}
	mayWrite := live != nil && live.GetUID() == known.GetUID() && live.GetGeneration() == known.GetGeneration() &&
		plan.IsTerminating(live) == plan.IsTerminating(known)
	for _, object := range before {
		kind := footest.KindOf(object)
		now := kind.Find(after, object.GetName())
		if f.owner.Is(object) {
			checkFooChange(t, object, now, known)
			continue
		}
		checkChange(t, object, now, kind.Find(after, kind.Name(known)), known, mayWrite)
	}
	for _, object := range after {
		switch kind := footest.KindOf(object); {
		case kind.Find(before, object.GetName()) != nil:
		case f.owner.Is(object) || plan.IsTerminating(known):
			t.Errorf("%s %s was created: it is a Foo, or for a Foo that is being deleted", kind, object.GetName())
		default:
			footest.CheckWanted(t, object, known)
		}
	}
	return append(f.TakeWrites(), f.Recorded()...)
}

// checkChange fails if the sync changed or deleted an object that the Foo does not control, or
// changed more than it may. wanted is the child of the kind that the Foo wants.
func checkChange(t *testing.T, before, after, wanted, known footest.Object, mayWrite bool) {
	t.Helper()
	if after != nil && equality.Semantic.DeepEqual(before, after) {
		return
	}
	kind, name := footest.KindOf(before), before.GetName()
	if !mayWrite {
		t.Errorf("%s %s was written, although the live Foo wants something else or is deleted", kind, name)
	}
	if before.GetDeletionTimestamp() != nil || !footest.BelongsTo(before, known) && !footest.HandedOverTo(before, known) {
		t.Errorf("%s %s was written, although the Foo does not control it: %v", kind, name, before.GetOwnerReferences())
	}
	if after == nil {
		if kind.Wanted(known) && (name == kind.Name(known) || wanted == nil || !footest.BelongsTo(wanted, known)) {
			t.Errorf("%s %s was deleted while the Foo has no other", kind, name)
		}
		return
	}
	footest.CheckWanted(t, after, known)
	footest.CheckOthersKept(t, before, after, known)
}

// checkFooChange fails if anything but the status of the synced Foo changed, or if the
// API server would refuse the status.
func checkFooChange(t *testing.T, before, after, known footest.Object) {
	t.Helper()
	if after == nil {
		t.Fatalf("Foo %s was deleted", before.GetName())
	}
	if equality.Semantic.DeepEqual(before, after) {
		return
	}
	if footest.KeyOf(before) != footest.KeyOf(known) || before.GetUID() != known.GetUID() || before.GetResourceVersion() != known.GetResourceVersion() {
		t.Errorf("Foo %s of UID %s at version %s was written", before.GetName(), before.GetUID(), before.GetResourceVersion())
	}
	footest.CheckStatus(t, after)
	footest.CheckOthersKept(t, before, after, known)
}

// fuzzFixture is a fixture whose caches the test fills through the transformer. This
// allows thousands of runs per second; running informers allow tens.
type fuzzFixture struct {
	*fixture
	owner   *footest.OwnerRow
	tracker clienttesting.ObjectTracker // of all objects
}

// fuzzTypes are the types of all objects.
var fuzzTypes = func() *runtime.Scheme {
	types := runtime.NewScheme()
	utilruntime.Must(errors.Join(scheme.AddToScheme(types), fooscheme.AddToScheme(types)))
	return types
}()

func (l Loop) newFuzzFixture(t *testing.T, owner *footest.OwnerRow) *fuzzFixture {
	t.Helper()
	f := &fuzzFixture{
		fixture: &fixture{
			ctx:     klog.NewContext(t.Context(), klog.Logger{}), // no log
			Cluster: &Cluster{T: t, Kube: &kubefake.Clientset{}, Foos: &foofake.Clientset{}, Recorder: newRecorder(), Metrics: fuzzMetrics},
		},
		owner: owner, tracker: clienttesting.NewObjectTracker(fuzzTypes, scheme.Codecs.UniversalDecoder()),
	}
	for _, calls := range []*clienttesting.Fake{&f.Kube.Fake, &f.Foos.Fake} {
		calls.AddReactor("*", "*", clienttesting.ObjectReaction(f.tracker))
		f.API.Serve(t, calls, f.tracker)
	}
	f.API.Admit = func(_ string, sent footest.Object) error { // as a real API server does
		if kind := footest.KindOf(sent); sent.GetName() == "" || kind.Invalid(sent) {
			return apierrors.NewInvalid(kind.Resource.GroupVersion().WithKind(kind.Kind).GroupKind(), sent.GetName(), nil)
		}
		return nil
	}
	f.kind = KindOf(owner, f.Clients())
	var err error
	f.program, err = l(f.Cluster, clocktesting.NewFakeClock(footest.Now.Time), f.kind)
	footest.Must(t, err)
	return f
}

// cacheSees replaces the contents of the caches.
func (f *fuzzFixture) cacheSees(objects []footest.Object) {
	f.T.Helper()
	replace := func(store cache.Store, isIts func(runtime.Object) bool, transform cache.TransformFunc) {
		var trimmed []any
		for _, object := range objects {
			if isIts(object) {
				kept, err := transform(object.DeepCopyObject())
				footest.Must(f.T, err)
				trimmed = append(trimmed, kept)
			}
		}
		footest.Must(f.T, store.Replace(trimmed, f.API.Version()))
	}
	replace(f.kind.Owners.Cache, f.owner.Is, f.kind.Transform)
	for i, row := range f.kind.Rows {
		replace(row.Cache, f.owner.Kinds[i].Is, row.Transform)
	}
}

// stored returns copies of the API server's objects.
func (f *fuzzFixture) stored() (objects []footest.Object) {
	f.T.Helper()
	for _, kind := range append([]*footest.Kind{f.owner.Kind}, f.owner.Kinds...) {
		list, err := f.tracker.List(kind.Resource, kind.Resource.GroupVersion().WithKind(kind.Kind), footest.Namespace)
		footest.Must(f.T, err)
		footest.Must(f.T, meta.EachListItem(list, func(item runtime.Object) error {
			objects = append(objects, item.DeepCopyObject().(footest.Object))
			return nil
		}))
	}
	return objects
}
