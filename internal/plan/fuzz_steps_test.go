// SPDX-License-Identifier: Apache-2.0

// FuzzSteps: the steps of a sync, whatever comes of each.

package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// FuzzSteps takes the steps of syncs of arbitrary worlds, of which some fail. Each kind has at
// most two, the same results lead to the same steps, and nothing is deleted before the owner
// has all that it asks for.
func FuzzSteps(f *testing.F) {
	footest.AddSeeds(f, footest.FuzzSeeds)
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		for _, owner := range footest.Owners {
			w := footest.NewFuzzWorld(t, owner, script, noise, words)
			footest.ExpectEqual(t, "the steps of the same sync", takeSteps(t, w, noise), takeSteps(t, w, noise))
		}
	})
}

// TestADeletionWaitsForAllElse takes the steps of Foos with children of earlier names.
func TestADeletionWaitsForAllElse(t *testing.T) {
	deletions := 0
	for _, seed := range footest.FuzzSeeds {
		w := footest.NewFuzzWorld(t, footest.FooOwner, seed.Script, seed.Noise, seed.Words)
		isDeletion := func(step string) bool { return strings.HasSuffix(step, string(ActionDelete)) }
		if slices.ContainsFunc(takeSteps(t, w, nil), isDeletion) {
			deletions++
		}
		if steps := takeSteps(t, w, []byte{1}); slices.ContainsFunc(steps, isDeletion) {
			t.Errorf("each step fails, and the last are %q", steps)
		}
	}
	if deletions == 0 {
		t.Error("no seed leads to a deletion")
	}
}

// A child that a Foo does not ask for any more stays while the name of another one is taken.
func TestADeletionWaitsForChildrenOfOtherKinds(t *testing.T) {
	kind := Foos(footest.DefaultImage)
	kind.Children = append(kind.Children[:1], Row[*samplev1alpha1.Foo, *corev1.ConfigMap]{
		Kind: "ConfigMap", Name: func(foo *samplev1alpha1.Foo) string { return foo.Name },
		Wanted: func(*samplev1alpha1.Foo) bool { return false },
	}.Of(kind))
	unset := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: footest.Namespace, OwnerReferences: child("a").GetOwnerReferences()}}
	for name, row := range map[string]struct {
		named Object
		want  []Action
	}{
		"of another":    {child("b"), []Action{ActionLeave, ActionNone}},
		"being deleted": {child("a", footest.Terminating), []Action{ActionWait, ActionNone}},
		"there":         {child("a"), []Action{ActionNone, ActionNone, ActionDelete}},
	} {
		t.Run(name, func(t *testing.T) {
			var taken []Action
			world := kind.NewWorld(footest.Foo("a"), func(of *ChildKind) (Object, []Object) {
				if of == kind.Children[0] {
					return row.named, nil
				}
				return unset, []Object{unset}
			})
			for _, action := range world.Steps() {
				taken = append(taken, action)
			}
			footest.ExpectEqual(t, "the steps", row.want, taken)
		})
	}
}

// takeSteps takes the steps of a sync, and returns them. An odd result means that one fails.
func takeSteps(t *testing.T, w *footest.FuzzWorld, results []byte) (taken []string) {
	t.Helper()
	all := rows[slices.IndexFunc(rows, func(r row) bool { return r.kind.Owner() == w.Owner })].OwnerKind
	world := all.NewWorld(w.Foo.(Owner), func(kind *ChildKind) (Object, []Object) {
		read := rowOf(kind).worldOf(w)
		return read.named(), read.controlled()
	})
	for child, action := range world.Steps() {
		if taken = append(taken, child.Kind+": "+string(action)); len(taken) > 2*len(all.Children) {
			t.Fatalf("the steps do not end: %q", taken)
		}
		if action == ActionDelete {
			checkComplete(t, world)
		}
		switch {
		case len(results) > 0 && results[len(taken)%len(results)]%2 == 1:
			child.Failure = errors.New("500")
		case action == ActionCreate:
			child.Observe(child.Desired(child.Owner, child.Seen), "")
		case action == ActionUpdate, action == ActionAdopt:
			child.Observe(child.DesiredUpdate(child.Named, child.Owner, child.Seen), "")
		}
	}
	return taken
}

// checkComplete fails unless an owner has all children that it asks for.
func checkComplete(t *testing.T, world *World) {
	t.Helper()
	for _, child := range world.Children {
		if child.Failure != nil {
			t.Errorf("something is deleted although a step about the %s failed", child.Kind)
		}
		if child.Wanted(world.Owner) && (child.Current == nil || !footest.BelongsTo(child.Current, world.Owner)) {
			t.Errorf("something is deleted while the %s is missing", child.Kind)
		}
	}
}
