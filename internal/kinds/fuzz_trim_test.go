// SPDX-License-Identifier: Apache-2.0

// FuzzTrimForCache: decisions and statuses for arbitrary objects, whole and trimmed.

package kinds

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/pkg/reconcile/plan"
	testrows "example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
)

// world is what a sync reads: a Foo, and the objects of one kind.
type world struct {
	row

	foo     plan.Owner
	objects []plan.Object
	// refused is true if the API server refuses the Foo's desired state, in these words.
	refused bool
	words   string
}

func (r row) worldOf(w *footest.FuzzWorld) world {
	return world{r, w.Foo.(plan.Owner), r.objectsIn(w), footest.Refuses(r.kind, w.Foo), w.Words}
}

// find returns the object with a name, or nil.
func (w world) find(name string) (found plan.Object) {
	for _, object := range w.objects {
		if object.GetName() == name {
			found = object
		}
	}
	return found
}

// named returns the object that the Foo wants, or nil.
func (w world) named() plan.Object { return w.find(w.Name(w.foo)) }

// controlled returns the objects that the Foo controls, as a sync reads them.
func (w world) controlled() []plan.Object {
	var controlled []plan.Object
	for _, object := range w.objects {
		if w.OwnerKind.IsControlledBy(object, w.foo) {
			controlled = append(controlled, object)
		}
	}
	return controlled
}

func (w world) view() *plan.View { return w.viewFor(w.foo) }

func (w world) decide() *plan.Step {
	return w.Decide(w.foo, w.named(), w.controlled(), w.view())
}

// statusAfter returns the Foo with its status, if its children of other kinds are ready.
func (w world) statusAfter(after result, now metav1.Time) plan.Owner {
	if after.Current != nil {
		after.CurrentDrift = w.DescribeDrift(after.Current, w.foo, w.view())
	}
	step, outcome := after.of(w.ChildKind, w.foo)
	others := plan.Row[plan.Owner, *corev1.ConfigMap]{
		Kind: "Other", Name: func(plan.Owner) string { return "other" }, Judge: func(*corev1.ConfigMap) plan.Readiness { return plan.Ready("Others are ready") },
	}.Of(w.OwnerKind)
	ready, found := (result{Action: plan.ActionNone, Current: &corev1.ConfigMap{}}).of(others, w.foo)
	return w.OwnerKind.WithStatus(w.foo, []*plan.Step{step, ready}, []plan.Outcome{outcome, found}, now)
}

func writes(action plan.Action) bool {
	return action == plan.ActionCreate || action == plan.ActionUpdate || action == plan.ActionAdopt
}

// outcomeOf returns the outcome of a sync that carries out a decision. The API server
// refuses the writes for a Foo with an invalid spec, and its message contains the words.
func (w world) outcomeOf(decided *plan.Step) result {
	result := result{Action: decided.Action, Pending: decided.Pending, Named: decided.Found}
	if decided.Found != nil && w.OwnerKind.IsControlledBy(decided.Found, w.foo) {
		result.Current = decided.Found
	}
	if w.refused && writes(decided.Action) {
		result.Failure = apierrors.NewForbidden(w.kind.Resource.GroupResource(), string(decided.Action), errors.New(w.words))
		return result
	}
	switch decided.Action {
	case plan.ActionCreate:
		result.Current = w.Desired(w.foo, nil, w.view())
	case plan.ActionUpdate, plan.ActionAdopt:
		result.Current = w.DesiredUpdate(w.named(), w.foo, w.view())
	}
	return result
}

// TestFuzzSeedsReachEveryDecisionAndReason checks that the seeds cover what they claim
// to.
func TestFuzzSeedsReachEveryDecisionAndReason(t *testing.T) {
	missing := map[string]bool{
		"none": true, "create": true, "update": true, "adopt": true, "leave": true, "wait": true, "obsolete": true,
		"suspend": true, "Available": true, "Progressing": true, "Suspended": true, footest.Primary.Kind + "Conflict": true, footest.Primary.Kind + "Failed": true, "Terminating": true,
	}
	if child := footest.Primary.New(footest.Foo("a")); footest.Primary.Unready(child) == "" {
		delete(missing, "Progressing") // a child is ready when it is stored
	}
	for _, seed := range footest.FuzzSeeds {
		w := rowOf(shipped).worldOf(footest.NewFuzzWorld(t, footest.FooOwner, seed.Script, seed.Noise, seed.Words))
		decided := w.decide()
		status := w.statusAfter(w.outcomeOf(decided), footest.Now)
		delete(missing, string(decided.Action))
		delete(missing, testrows.ConditionOf(status).Reason)
		if len(decided.Obsolete) > 0 {
			delete(missing, "obsolete")
		}
	}
	var left []string
	for what := range missing {
		left = append(left, what)
	}
	if len(left) > 0 {
		t.Errorf("no seed leads to: %s", strings.Join(left, ", "))
	}
}

// FuzzTrimForCache decides on complete objects and on the parts that the caches keep. The
// outcomes must be equal.
func FuzzTrimForCache(f *testing.F) {
	footest.AddSeeds(f, footest.FuzzSeeds)
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		eachWorld(t, script, noise, words, func(r row, w *footest.FuzzWorld) { r.trim(t, w) })
	})
}

func (r row) trim(t *testing.T, w *footest.FuzzWorld) {
	t.Helper()
	whole := r.worldOf(w)
	foo, err := r.OwnerKind.Transform(plan.CopyOf(w.Foo))
	footest.Must(t, err)
	trimmed := world{row: r, foo: foo.(plan.Owner), refused: whole.refused, words: w.Words}
	for _, object := range whole.objects {
		kept := r.kept(plan.CopyOf(object))
		r.checkIndexed(t, object, kept)
		trimmed.objects = append(trimmed.objects, kept)
	}
	want, got := whole.decide(), trimmed.decide()
	footest.ExpectEqual(t, "the action", want.Action, got.Action)
	footest.ExpectEqual(t, "what to delete", footest.NamesOf(want.Obsolete), footest.NamesOf(got.Obsolete))
	footest.ExpectEqual(t, "the drift", want.Drift, got.Drift)
	if want.Action != plan.ActionAdopt && want.Action != plan.ActionUpdate { // these write a live read
		footest.ExpectEqual(t, "the status", whole.statusAfter(whole.outcomeOf(want), footest.Now).GetStatus(), trimmed.statusAfter(trimmed.outcomeOf(got), footest.Now).GetStatus())
	}
}

// checkIndexed fails if the trimmed object has another name, owner, UID or version than
// the complete one.
func (r row) checkIndexed(t *testing.T, whole, kept footest.Object) {
	t.Helper()
	indexed := func(object footest.Object) any {
		return ptr.Deref(r.OwnerKind.ControllerOf(object), metav1.OwnerReference{}).UID
	}
	footest.ExpectEqual(t, "the owner in the index", indexed(whole), indexed(kept))
	footest.ExpectEqual(t, "the key", footest.KeyOf(whole), footest.KeyOf(kept))
	if whole.GetUID() != kept.GetUID() || whole.GetResourceVersion() != kept.GetResourceVersion() {
		t.Errorf("UID %s at version %s became UID %s at version %s",
			whole.GetUID(), whole.GetResourceVersion(), kept.GetUID(), kept.GetResourceVersion())
	}
}
