// SPDX-License-Identifier: Apache-2.0

// FuzzOwnedFields: the owned fields, for arbitrary objects of every row; and FuzzSteps: the
// steps of a sync, whatever their results.

package kinds

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

// rows are the rows of all kinds of the program. The fuzz targets run for each.
var rows = func() (rows []row) {
	for _, owner := range Declared(Options{Image: footest.DefaultImage}) {
		for _, child := range owner.Children {
			rows = append(rows, rowOf(child))
		}
	}
	return rows
}()

// row is a row, with what the tests know about its kind.
type row struct {
	*plan.ChildKind

	kind *footest.Kind
}

func rowOf(child *plan.ChildKind) row { return row{child, footest.KindOf(child.Empty())} }

func (r row) resource() string { return r.Resource.Resource }

func TestEveryKindIsFuzzed(t *testing.T) {
	var want, got []string
	for _, owner := range footest.Owners {
		for _, kind := range owner.Kinds {
			want = append(want, kind.Describe())
		}
	}
	for _, row := range rows {
		var kind footest.Kind
		kind.Kind, kind.Resource, kind.Blocks = row.Kind, row.Resource, row.Blocks
		got = append(got, kind.Describe())
	}
	footest.ExpectEqual(t, "the tables of internal/kinds, as test/footest has them,", want, got)
}

// eachWorld calls a test for each row, with a world of its owner's kind.
func eachWorld(t *testing.T, script, noise []byte, words string, test func(r row, w *footest.FuzzWorld)) {
	t.Helper()
	for _, owner := range footest.Owners {
		w := footest.NewFuzzWorld(t, owner, script, noise, words)
		for _, row := range rows {
			if row.kind.Owner() == owner {
				test(row, w)
			}
		}
	}
}

// viewFor returns the children of the earlier rows in their desired state.
func (r row) viewFor(foo plan.Owner) *plan.View {
	view, kinds := &plan.View{}, r.kind.Owner().Kinds
	for _, kind := range kinds[:slices.Index(kinds, r.kind)] {
		if kind.Wanted(foo) {
			view.Observe(kind.Kind, kind.New(foo))
		}
	}
	return view
}

// objectsIn returns the objects of the row's type.
func (r row) objectsIn(w *footest.FuzzWorld) []plan.Object {
	var objects []plan.Object
	for _, child := range w.Children {
		if r.kind.Is(child) {
			objects = append(objects, child)
		}
	}
	return objects
}

// FuzzOwnedFields checks the rules of owned fields on every row and any object.
func FuzzOwnedFields(f *testing.F) {
	footest.AddSeeds(f, footest.FuzzSeeds)
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		eachWorld(t, script, noise, words, func(r row, w *footest.FuzzWorld) {
			for _, problem := range r.owned(w) {
				t.Errorf("the row of %s: %s", r.resource(), problem)
			}
		})
	})
}

// owned returns which rules the row breaks: it treats its arguments as read-only; what it sets,
// and nothing else, is drift; it takes nothing from others; setting it twice changes nothing;
// and what the caches keep leads to the same decision.
func (r row) owned(w *footest.FuzzWorld) []string {
	var problems []string
	for _, object := range r.objectsIn(w) {
		foo := w.Foo.(plan.Owner)
		view := r.viewFor(foo)
		problems = append(problems, r.ownedOf(foo, object, view)...)
		problems = append(problems, r.ownedOf(foo, object, &plan.View{})...)
		wanted := plan.CopyOf(object)
		r.SetOwned(wanted, foo, view)
		if differs := r.kind.Differs(wanted, w.Foo); differs != "" {
			problems = append(problems, fmt.Sprintf("%s: with the owned fields set it %s", object.GetName(), differs))
		}
	}
	return problems
}

func (r row) ownedOf(foo plan.Owner, found plan.Object, view *plan.View) (problems []string) {
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s: ", found.GetName())+fmt.Sprintf(format, args...))
	}
	before := plan.CopyOf(found)
	decided := r.Decide(foo, found, []plan.Object{found}, view)
	r.DesiredUpdate(found, foo, view)
	kept := r.kept(found)
	fromCache := r.Decide(foo, kept, []plan.Object{kept}, view)
	reported(r.ChildKind, foo, footest.Now, result{Action: decided.Action, Named: found, Current: found})
	if !reflect.DeepEqual(before, found) {
		report("an object that was only read has changed")
		return problems
	}
	if decided.Action != fromCache.Action || decided.Drift != fromCache.Drift || len(decided.Obsolete) != len(fromCache.Obsolete) {
		report("the decision is %s (%s), by what the cache keeps %s (%s)", decided.Action, decided.Drift, fromCache.Action, fromCache.Drift)
	}
	if !footest.BelongsTo(found, foo) {
		return problems
	}
	if r.IsReady(found) != r.IsReady(kept) {
		report("it is ready: %v, by what the cache keeps: %v", r.IsReady(found), r.IsReady(kept))
	}
	wanted := plan.CopyOf(found)
	r.SetOwned(wanted, foo, view)
	if drift := r.DescribeDrift(found, foo, view); (drift == "") != equality.Semantic.DeepEqual(found, wanted) {
		report("its drift is %q, but setting the owned fields changes it: %v", drift, !equality.Semantic.DeepEqual(found, wanted))
	}
	if taken := r.kind.DescribeTaken(found, wanted, foo); taken != "" {
		report("fields of others are set (-before +after):\n%s", taken)
	}
	again := plan.CopyOf(wanted)
	r.SetOwned(again, foo, view)
	if !reflect.DeepEqual(wanted, again) {
		report("setting the owned fields twice changes it twice")
	}
	return problems
}

// kept returns what the cache keeps of an object.
func (r row) kept(found plan.Object) plan.Object {
	kept, err := r.Transform(found)
	if err != nil {
		panic(err)
	}
	return kept.(plan.Object)
}

// TestAChildOfEachRowStaysAsItWasCreated follows a child of each row through its creation: the
// row creates it, the API server fills in the rest, the cache keeps a part, and nothing is left
// to do.
func TestAChildOfEachRowStaysAsItWasCreated(t *testing.T) {
	for _, row := range rows {
		t.Run(row.resource(), row.created)
	}
}

func (r row) created(t *testing.T) {
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	foo := r.kind.Owner().Asking("a", "web", 1).(plan.Owner)
	view := r.viewFor(foo)
	stored := r.stored(foo, view)
	if differs := r.kind.Differs(stored, foo); differs != "" {
		t.Fatalf("SetOwned forgets something: a new %s %s", r.Kind, differs)
	}
	if drift := r.DescribeDrift(stored, foo, view); drift != "" {
		t.Fatalf("SetOwned changes what the API server has filled in (set single fields, not whole structs and lists): %s", drift)
	}
	if drift := r.DescribeDrift(r.kept(stored), foo, view); drift != "" {
		t.Fatalf("Keep drops what SetOwned sets, so to the controller it is never there: %s", drift)
	}
}

// stored returns a new child as the API server stores it.
func (r row) stored(foo plan.Owner, view *plan.View) plan.Object {
	child := r.Desired(foo, nil, view)
	child.SetUID(types.UID(r.Kind))
	child.SetResourceVersion("1")
	r.kind.Default(child)
	return child
}

// FuzzSteps takes the steps of syncs of arbitrary worlds, some of which fail. Each kind has at
// most two, the same results lead to the same steps, and nothing is deleted before the owner
// has everything that it wants.
func FuzzSteps(f *testing.F) {
	footest.AddSeeds(f, footest.FuzzSeeds)
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		for _, owner := range footest.Owners {
			w := footest.NewFuzzWorld(t, owner, script, noise, words)
			footest.ExpectEqual(t, "the steps of the same sync", takeSteps(t, w, noise), takeSteps(t, w, noise))
		}
	})
}

// A child that a Foo no longer wants stays while the name of another child is taken.
func TestADeletionWaitsForChildrenOfOtherKinds(t *testing.T) {
	kind := declared(footest.DefaultImage)
	kind.Children = append(kind.Children[:1], plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]{
		Kind: "ConfigMap", Name: func(foo *samplev1alpha1.Foo) string { return foo.Name }, Wanted: func(*samplev1alpha1.Foo) bool { return false },
	}.Of(kind))
	unset := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: footest.Namespace, OwnerReferences: child("a").GetOwnerReferences()}}
	for name, row := range map[string]struct {
		named plan.Object
		want  []plan.Action
	}{
		"of another":    {child("b"), []plan.Action{plan.ActionLeave, plan.ActionNone}},
		"being deleted": {child("a", footest.Terminating), []plan.Action{plan.ActionWait, plan.ActionNone}},
		"there":         {child("a"), []plan.Action{plan.ActionNone, plan.ActionNone, plan.ActionDelete}},
	} {
		t.Run(name, func(t *testing.T) {
			var taken []plan.Action
			world := kind.NewWorld(footest.Foo("a"), func(of *plan.ChildKind) plan.Found {
				if of == kind.Children[0] {
					return found(row.named)
				}
				return found(unset, unset)
			})
			for step := range world.Steps() {
				taken = append(taken, step.Action)
				world.Record(step, step.AsFound())
			}
			footest.ExpectEqual(t, "the steps", row.want, taken)
		})
	}
}

// found is what there is of a kind: the object with the name that an owner wants, and those that it controls.
func found(named plan.Object, controlled ...plan.Object) plan.Found {
	return plan.Found{
		Named: func(cache.ObjectName) plan.Object { return named }, Controlled: controlled,
		Owner: func(cache.ObjectName) plan.Owner { return nil },
	}
}

// takeSteps takes the steps of a sync, and returns them. An odd result means that one fails.
func takeSteps(t *testing.T, w *footest.FuzzWorld, results []byte) (taken []string) {
	t.Helper()
	all := rows[slices.IndexFunc(rows, func(r row) bool { return r.kind.Owner() == w.Owner })].OwnerKind
	world := all.NewWorld(w.Foo.(plan.Owner), func(kind *plan.ChildKind) plan.Found {
		read := rowOf(kind).worldOf(w)
		return found(read.named(), read.controlled()...)
	})
	children := map[string]plan.Outcome{}
	for step := range world.Steps() {
		if taken = append(taken, step.Part+": "+string(step.Action)); len(taken) > 2*len(all.Children) {
			t.Fatalf("the steps do not end: %q", taken)
		}
		outcome := step.AsFound()
		switch {
		case len(results) > 0 && results[len(taken)%len(results)]%2 == 1:
			outcome.Err = errors.New("500")
		case step.Action == plan.ActionCreate:
			outcome.Child = step.Desired(step.Owner, nil, step.View)
		case step.Action == plan.ActionUpdate, step.Action == plan.ActionAdopt:
			outcome = plan.Outcome{Child: step.DesiredUpdate(step.Found, step.Owner, step.View)}
		}
		if step.Action == plan.ActionDelete {
			checkComplete(t, world.Owner, all, children)
		} else {
			children[step.Kind] = outcome
		}
		world.Record(step, outcome)
	}
	return taken
}

// checkComplete fails unless an owner has all children that it wants, after the steps about them.
func checkComplete(t *testing.T, owner plan.Owner, all *plan.Kind, children map[string]plan.Outcome) {
	t.Helper()
	for _, kind := range all.Children {
		outcome := children[kind.Kind]
		if outcome.Err != nil {
			t.Errorf("something is deleted although a step about the %s failed", kind.Kind)
		}
		if rowOf(kind).kind.Wanted(owner) && (outcome.Child == nil || !footest.BelongsTo(outcome.Child, owner)) {
			t.Errorf("something is deleted while the %s is missing", kind.Kind)
		}
	}
}
