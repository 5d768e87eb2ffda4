// SPDX-License-Identifier: Apache-2.0

// Tests of the whole controller: under the faults of pkg/reconcile/reconciletest, in every order of
// test/simulation/explore, and FuzzSync: single syncs of arbitrary objects, with stale caches.

package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/looptest"
	"example.com/sample-controller/test/simulation/explore"
	"example.com/sample-controller/tools/preview"
	"example.com/sample-controller/tools/preview/previewtest"
)

func TestSimulation(t *testing.T) {
	for _, owner := range footest.Owners {
		reconciletest.TestController(t, owner, startSimulated(owner))
	}
}

func TestSimulationRandom(t *testing.T) {
	for _, owner := range footest.Owners {
		reconciletest.TestRandomSequences(t, owner, startSimulated(owner))
	}
}

// All controllers share simulatedMetrics, because component-base keeps each registry forever:
// the registries of 100,000 runs take gigabytes.
var simulatedMetrics = metrics.New("sample-controller", "Foo")

// startSimulated returns the function that runs the controller of a kind with the clients of a
// simulation, wired as in main.go.
func startSimulated(owner *footest.OwnerRow) reconciletest.Start {
	return startWith(func(clients kinds.Clients) *table.Kind { return kindOf(owner, clients) })
}

// startWith is like startSimulated, for a kind that a test declares.
func startWith(declare func(clients kinds.Clients) *table.Kind) reconciletest.Start {
	return func(ctx context.Context, client rest.Interface, recorder record.EventRecorder) error {
		kube, foos := kubernetes.New(client), clientset.New(client)
		ctx, cancel := context.WithCancel(ctx)
		kubeInformers := kubeinformers.NewSharedInformerFactoryWithOptions(kube, 0)
		fooInformers := fooinformers.NewSharedInformerFactoryWithOptions(foos, reconciletest.ResyncPeriod)
		defer func() {
			cancel()
			kubeInformers.Shutdown()
			fooInformers.Shutdown()
		}()
		kind := declare(kinds.Clients{Kube: kube, Custom: foos, KubeInformers: kubeInformers, CustomInformers: fooInformers})
		if err := table.Prepare(kind); err != nil {
			return err
		}
		controller := NewController(Config{
			Recorder: recorder, Clock: clock.RealClock{}, CallTimeout: reconciletest.CallTimeout, Metrics: simulatedMetrics,
		}, kind)
		kubeInformers.StartWithContext(ctx)
		fooInformers.StartWithContext(ctx)
		kubeInformers.WaitForCacheSyncWithContext(ctx)
		fooInformers.WaitForCacheSyncWithContext(ctx)
		return controller.Run(ctx, ctx, 2)
	}
}

// TestReconcile is what a project's own test looks like: it knows no rows of tests.
func TestReconcile(t *testing.T) {
	reconciletest.Test(t, reconciletest.Controller[*samplev1alpha1.Foo]{
		Kind:    kinds.Declared(kinds.Options{Image: footest.DefaultImage})[0],
		Example: &samplev1alpha1.Foo{Spec: samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(1))}},
		Edits: []func(*samplev1alpha1.Foo){
			func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) },
			func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = "api" },
		},
		Start: startSimulated(footest.FooOwner),
		Every: 10, // TestSimulation runs all of the like
	})
}

func TestExplore(t *testing.T) { explore.Test(t, footest.FooOwner, newExplored) }

func TestExploreConformance(t *testing.T) { explore.TestConformance(t, footest.FooOwner, newExplored) }

// newExplored returns the controller for test/simulation/explore.
func newExplored(parts explore.Parts) (explore.Subject, error) {
	foos := kindOf(footest.FooOwner, kinds.Clients{
		Kube: parts.Kubernetes, Custom: parts.Custom, KubeInformers: parts.KubeInformers, CustomInformers: parts.CustomInformers,
	})
	foos.Resource.Version = cmp.Or(parts.Version, foos.Resource.Version)
	if err := table.Prepare(foos); err != nil {
		return explore.Subject{}, err
	}
	controller := NewController(Config{Recorder: parts.Recorder, Clock: parts.Clock, CallTimeout: explore.CallTimeout, Metrics: simulatedMetrics}, foos)
	controller.queue.TypedDelayingInterface = parts.Queue
	_, err := controller.addEventHandlers(context.Background())
	return explore.Subject{Controller: controller, State: exploredState, ProcessNextWorkItem: controller.processNextWorkItem}, err
}

// exploredState describes the fields of the controller for the exploration: a field that is added
// or renamed has to be added or renamed here. The numbers are of failures and repairs; the
// controller reads them only to choose how long to wait. Without a bound, a key that loses races
// while an event is late would have a new state with each. After five refusals, the back-off is
// longer than it takes until a Foo is stalled. From twelve repairs on, the pause is the longest. The
// opponents of seldom repairs decide only on Events.
var exploredState = explore.State{
	"main.Controller": "kind:not queue:not backoff rollouts known crdMismatch replaced " +
		"opponents:not references:not callers:not fightPeriod:not recorder:not clock:not callTimeout:not metrics:not",
	"queue.Backoff":       "clock:not keys",
	"queue.keyBackoff":    "failures syncing held stale until:until reported:not",
	"queue.failedPart":    "Attempt inputs err until:until races:2 refusals:6 outages:2",
	"queue.Attempt":       "Again After RefusalBackoff Held Expected Deferred",
	"memory.Rollouts":     "Clock:not Limit:not begun waiting",
	"memory.Map":          "byKey",
	"memory.Owner":        "uid Written stale postponed losses Pruned Transition requested ReadFor Synced Told children",
	"memory.Child":        "part Written Confirmed newSpec problem repairs",
	"memory.Written":      "resourceVersion at",
	"memory.Confirmation": "generation child resourceVersion version recurs",
	"memory.Problem":      "what since",
	"memory.Series":       "what generation count:12 last:pause=count undone fight",
	"plan.Fight":          "Write Name By Drift",
	"plan.Manager":        "Name Subresource",
	"memory.Transition":   "from unanswered",
	"memory.CRDMismatch":  "Clock:not Resource:not retry:not none:not pruned:not",
	"memory.Replaced":     "Clock:not byKey",
}

// FuzzSync syncs the Foo "a" with arbitrary objects and caches that may be stale. However stale
// they are, the sync changes nothing that belongs to others, and the second sync after they
// have caught up (the first, if they were not stale) writes nothing, except that each further
// obsolete child is deleted by a sync of its own. With fresh caches, it writes what its preview
// announces.
func FuzzSync(f *testing.F) {
	footest.AddSeeds(f, slices.Concat(footest.FuzzSeeds, footest.StaleSeeds))
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		for _, owner := range footest.Owners {
			syncUntilSilent(t, footest.NewFuzzWorld(t, owner, script, noise, words))
		}
	})
}

func syncUntilSilent(t *testing.T, w *footest.FuzzWorld) {
	t.Helper()
	for _, child := range w.Children {
		footest.KindOf(child).Default(child)
	}
	f := newFuzzFixture(t, w.Owner)
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
	_, err := f.syncHandler(f.ctx, footest.KeyOf(known))
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

func newFuzzFixture(t *testing.T, owner *footest.OwnerRow) *fuzzFixture {
	t.Helper()
	f := &fuzzFixture{
		fixture: &fixture{
			ctx: klog.NewContext(t.Context(), klog.Logger{}), // no log
			Cluster: &looptest.Cluster{
				T: t, Kube: &kubefake.Clientset{}, Foos: &foofake.Clientset{}, Recorder: record.NewFakeRecorder(1000), Metrics: simulatedMetrics,
			},
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
	f.control(owner, clocktesting.NewFakeClock(footest.Now.Time))
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
