// SPDX-License-Identifier: Apache-2.0

// Tests of the rules for writes, of the record, and of what is right at rest, for each kind of
// children: right worlds, and wrong ones, each refused by name.

package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
)

func TestWrongWrite(t *testing.T) {
	old, child, unowned := footest.Child("a", footest.Named("old")), footest.Child("a"), footest.Child("a", footest.WithoutOwner)
	handedOver := footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a"))
	serves := "while it serves"
	if !footest.Primary.Serves(old) {
		serves = ""
	}
	for what, tt := range map[string]struct {
		foo, stored, next, known rows.Object
		says                     string
	}{
		"a creation":                          {settled(), nil, child, nil, ""},
		"a creation without an owner":         {settled(), nil, unowned, nil, "without a controller reference to a Foo"},
		"the creation of a Foo":               {settled(), nil, settled(), nil, "belongs to users"},
		"the deletion of a Foo":               {settled(), settled(), nil, nil, "belongs to users"},
		"an update of a Foo":                  {settled(), settled(), settled(), nil, ""},
		"an update that keeps the owner":      {settled(), child, footest.Child("a", footest.WithTeam), nil, ""},
		"the owner is suspended":              {settled(footest.Suspended), child, child, nil, "is suspended"},
		"the owner is gone":                   {settled(footest.WithFooUID("uid-new")), child, child, nil, "no living owner"},
		"an adoption of what is handed over":  {settled(), handedOver, child, nil, ""},
		"it is handed over to another":        {settled(), handedOver, footest.Child("b"), nil, "nobody has handed it over to b"},
		"nobody has handed it over":           {settled(), unowned, child, nil, "nobody has handed it over to a"},
		"it belongs to another":               {settled(), footest.Child("b"), child, nil, "takes it from b"},
		"it loses its owner":                  {settled(), child, unowned, nil, "without an owner"},
		"the successor is ready":              {settled(), old, nil, child, ""},
		"the successor differs":               {settled(), old, nil, footest.Child("a", footest.Drifted), serves},
		"the successor is not there":          {settled(), old, nil, nil, "is not seen to have web"},
		"the successor is nobody's":           {settled(), old, nil, unowned, "is not seen to have web"},
		"the deleted one is asked for":        {settled(), child, nil, child, "Foo a asks for it"},
		"the deleted one is nobody's":         {settled(), unowned, nil, nil, "no living owner"},
		"its owner has another UID":           {settled(footest.WithFooUID("uid-new")), old, nil, child, "no living owner"},
		"nothing is to be done for the owner": {settled(footest.Suspended), old, nil, child, "is suspended"},
	} {
		w := World{Owner: footest.FooOwner, Objects: []rows.Object{tt.foo}}
		wrong := w.WrongWrite(tt.stored, tt.next, func(string) rows.Object { return tt.known })
		if tt.says == "" && wrong != "" || !strings.Contains(wrong, tt.says) {
			t.Errorf("%s: it says %q, want %q", what, wrong, tt.says)
		}
	}
}

// settled returns the Foo "a" with a child "web", and a status that says so.
func settled(options ...footest.FooOption) rows.Object {
	return footest.Foo("a", append([]footest.FooOption{footest.WithStatus(footest.Settled("a"))}, options...)...)
}

// saying returns a Foo whose condition Ready has another status and reason.
func saying(status metav1.ConditionStatus, reason string, options ...footest.FooOption) rows.Object {
	conditions := footest.Ready(status, reason, "", footest.Earlier)
	if isFinal(reason) {
		conditions = footest.Stalled(conditions)
	}
	return settled(append(options, func(foo *samplev1alpha1.Foo) { foo.Status.Conditions = conditions })...)
}

func TestAtRest(t *testing.T) {
	kind := footest.Primary.Kind
	conflict := saying(metav1.ConditionFalse, kind+"Conflict")
	for _, tt := range []struct {
		what    string
		objects []rows.Object
		refused bool
		// wrong is what is said of the world, or "" if it is right.
		wrong string
	}{
		{"all is as asked", []rows.Object{settled(), footest.Child("a")}, false, ""},
		{"no child", []rows.Object{settled()}, false, "Foo a has no " + kind + " web"},
		{"two children", []rows.Object{settled(), footest.Child("a"), footest.Child("a", footest.Named("old"))}, false, "Foo a has 2 "},
		{"a child that differs", []rows.Object{settled(), footest.Child("a", footest.Drifted)}, false, "Foo a has a " + kind + " that has "},
		{"a child that differs, and writes are refused", []rows.Object{saying(metav1.ConditionFalse, kind+"Failed"), footest.Child("a", footest.Drifted)}, true, ""},
		{"a refusal that is not told", []rows.Object{settled(), footest.Child("a", footest.Drifted)}, true, "want False, " + kind + "Failed"},
		{"a child that is not adopted", []rows.Object{settled(), footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a"))}, false, "Foo a has not adopted " + kind + " web"},
		{"a name that is taken", []rows.Object{conflict, footest.Child("a", footest.WithoutOwner)}, false, ""},
		{"a name that is taken, not told", []rows.Object{settled(), footest.Child("a", footest.WithoutOwner)}, false, "want False, " + kind + "Conflict"},
		{"a conflict that is over", []rows.Object{conflict, footest.Child("a")}, false, "Foo a has Ready=False, " + kind + "Conflict (), want True, Available"},
		{"a final reason that is not stalled", []rows.Object{settled(func(foo *samplev1alpha1.Foo) { foo.Status.Conditions = conflictConditions() }), footest.Child("a", footest.WithoutOwner)}, false, "Stalled is false"},
		{"a child that goes", []rows.Object{saying(metav1.ConditionFalse, "Terminating"), footest.Child("a", footest.Terminating)}, false, ""},
		{"a suspended Foo", []rows.Object{saying(metav1.ConditionFalse, "Suspended", footest.Suspended)}, false, ""},
		{"an older status", []rows.Object{settled(footest.WithGeneration(2)), footest.Child("a")}, false, "Foo a has generation 2, but reports on 1"},
		{"no condition", []rows.Object{footest.Foo("a"), footest.Child("a")}, false, "Foo a has no condition Ready"},
		{"a child of nobody", []rows.Object{footest.Child("b")}, false, kind + " web belongs to a deleted owner"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			wrong := strings.Join(World{Owner: footest.FooOwner, Objects: tt.objects, Refused: tt.refused}.WrongAtRest(), "; ")
			if tt.wrong == "" && wrong != "" || !strings.Contains(wrong, tt.wrong) || tt.wrong != "" && wrong == "" {
				t.Errorf("it says %q, want %q", wrong, tt.wrong)
			}
		})
	}
}

// conflictConditions are those of a conflict that its Foo does not call final.
func conflictConditions() []metav1.Condition {
	return footest.Ready(metav1.ConditionFalse, footest.Primary.Kind+"Conflict", "", footest.Earlier)
}

func TestARecordingCatchesUpWithAList(t *testing.T) {
	a, b := func(version string) moment { return fooAt("a", version) }, func(version string) moment { return fooAt("b", version) }
	for _, row := range []struct {
		what     string
		recorded []moment
		has      bool
	}{
		{"the list's state", []moment{a("5")}, true},
		{"a newer state", []moment{a("6")}, true},
		{"an older state", []moment{a("4")}, false},
		{"nothing", nil, false},
		{"another Foo that is not in the list", []moment{a("5"), b("6")}, false},
		{"another Foo and its deletion", []moment{a("5"), b("6"), gone(b("7"))}, true},
		{"another Foo that is newer than the list", []moment{a("5"), b("9")}, true},
		{"another child", []moment{a("5"), {Object: footest.Child("a", footest.AtVersion("5"))}}, true},
	} {
		t.Run(row.what, func(t *testing.T) {
			h := &History{Owner: footest.FooOwner}
			for _, m := range row.recorded {
				h.Add(m.Object, m.deleted)
			}
			list := &samplev1alpha1.FooList{ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: []samplev1alpha1.Foo{*a("5").Object.(*samplev1alpha1.Foo)}}
			if has, err := h.Has(footest.FooKind, list); has != row.has || err != nil {
				t.Errorf("The record has caught up: %v (%v), want %v", has, err, row.has)
			}
		})
	}
}

func fooAt(uid types.UID, version string) moment {
	return moment{Object: &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid, ResourceVersion: version}}}
}

// moment is a state of a Foo or of a child in a history. Its version is its place there.
type moment struct {
	rows.Object

	deleted bool
}

func gone(m moment) moment { return moment{m.Object, true} }

func historyOf(moments []moment) *History {
	h := &History{Owner: footest.FooOwner, kinds: []*rows.Kind{footest.Primary}}
	for i, m := range moments {
		m.SetResourceVersion(fmt.Sprint(i + 1))
		h.Add(m.Object, m.deleted)
	}
	return h
}

// foo is a state of the Foo "foo", which asks for a Deployment's name and size. claims is
// the generation that its status reports as ready, or 0.
func foo(uid types.UID, generation int64, name string, size *int32, claims int64) moment {
	f := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "foo", UID: uid, Generation: generation},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: size},
		Status: samplev1alpha1.FooStatus{ObservedGeneration: claims, Conditions: []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: claims},
		}},
	}
	if claims == 0 {
		f.Status.Conditions[0].Status = metav1.ConditionFalse
	}
	return moment{Object: f}
}

// deployment is a state of a Deployment: controlled by owner, of a size, rolled out, and
// then changed.
func deployment(name string, owner types.UID, size int32, changes ...func(*appsv1.Deployment)) moment {
	d := footest.Deployment("foo", footest.ScaledTo(size))
	d.Namespace, d.Name, d.Generation = "ns", name, 1
	d.OwnerReferences[0].UID = owner
	d.Spec.Template.Spec.Containers = slices.Insert(d.Spec.Template.Spec.Containers, 0, corev1.Container{Name: "other", Image: "other"})
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: size, UpdatedReplicas: size, AvailableReplicas: size}
	for _, change := range changes {
		change(d)
	}
	return moment{Object: d}
}

var two, five = new(int32(2)), new(int32(5))

var histories = []struct {
	what    string
	moments []moment
	lies    int
}{
	{"empty", nil, 0},
	{"never reported", []moment{foo("a", 1, "d", two, 0)}, 0},
	{"rolled out, then reported", []moment{foo("a", 1, "d", two, 0), deployment("d", "a", 2), foo("a", 1, "d", two, 1)}, 0},
	{"reported without a Deployment", []moment{foo("a", 1, "d", two, 0), foo("a", 1, "d", two, 1)}, 1},
	{"reported before the rollout", []moment{foo("a", 1, "d", two, 0), foo("a", 1, "d", two, 1), deployment("d", "a", 2)}, 1},
	{"reported for the previous generation", []moment{foo("a", 1, "d", two, 0), deployment("d", "a", 2), foo("a", 2, "d", five, 1)}, 0},
	{"reported for a scale that did not happen", []moment{
		foo("a", 1, "d", two, 0), deployment("d", "a", 2), foo("a", 1, "d", two, 1), foo("a", 2, "d", five, 1), foo("a", 2, "d", five, 2),
	}, 1},
	{"reported after a scale", []moment{
		foo("a", 1, "d", two, 0), deployment("d", "a", 2), foo("a", 2, "d", five, 0), deployment("d", "a", 5), foo("a", 2, "d", five, 2),
	}, 0},
	{"already ready when the generation begins", []moment{deployment("d", "a", 2), foo("a", 2, "d", two, 1), foo("a", 2, "d", two, 2)}, 0},
	{"ready before the generation began, but not since", []moment{
		deployment("d", "a", 5), foo("a", 1, "d", two, 0), deployment("d", "a", 2), foo("a", 2, "d", five, 0), foo("a", 2, "d", five, 2),
	}, 1},
	{"ready only for a moment since", []moment{
		foo("a", 1, "d", two, 0), deployment("d", "a", 2), deployment("d", "a", 2, oneAvailable), foo("a", 1, "d", two, 1),
	}, 0},
	{"deleted before the generation began", []moment{
		deployment("d", "a", 2), gone(deployment("d", "a", 2)), foo("a", 1, "d", two, 0), foo("a", 1, "d", two, 1),
	}, 1},
	{"controlled by another Foo", []moment{foo("a", 1, "d", two, 0), deployment("d", "b", 2), foo("a", 1, "d", two, 1)}, 1},
	{"controlled by nobody", []moment{foo("a", 1, "d", two, 0), deployment("d", "a", 2, nobodys), foo("a", 1, "d", two, 1)}, 1},
	{"of another name", []moment{foo("a", 1, "e", two, 0), deployment("d", "a", 2), foo("a", 1, "e", two, 1)}, 1},
	{"of another image", []moment{foo("a", 1, "d", two, 0), deployment("d", "a", 2, mirrored), foo("a", 1, "d", two, 1)}, 1},
	{"with an unavailable Pod", []moment{foo("a", 1, "d", two, 0), deployment("d", "a", 2, oneAvailable), foo("a", 1, "d", two, 1)}, 1},
	{"with an old Pod", []moment{foo("a", 1, "d", two, 0), deployment("d", "a", 2, oneUpdated), foo("a", 1, "d", two, 1)}, 1},
	{"with one Pod too many", []moment{foo("a", 1, "d", two, 0), deployment("d", "a", 2, threePods), foo("a", 1, "d", two, 1)}, 1},
	{"not seen by its controller", []moment{foo("a", 1, "d", two, 0), deployment("d", "a", 2, unseen), foo("a", 1, "d", two, 1)}, 1},
	{"of any size, if the Foo does not set it", []moment{foo("a", 1, "d", nil, 0), deployment("d", "a", 7), foo("a", 1, "d", nil, 1)}, 0},
	{"reported when the record begins", []moment{foo("a", 1, "d", two, 1)}, 0},
	{"reported when the record begins, and for the next generation", []moment{foo("a", 1, "d", two, 1), foo("a", 2, "d", five, 2)}, 1},
	{"reported twice for one generation is one lie", []moment{foo("a", 1, "d", two, 0), foo("a", 1, "d", two, 1), foo("a", 1, "d", two, 1)}, 1},
	{"deleted, and recreated with the same generation", []moment{
		foo("a", 1, "d", two, 0), deployment("d", "a", 2), foo("a", 1, "d", two, 1), gone(foo("a", 1, "d", two, 1)),
		foo("b", 1, "d", two, 0), foo("b", 1, "d", two, 1),
	}, 1},
	{"the last state of a deleted Foo does not count", []moment{foo("a", 1, "d", two, 0), gone(foo("a", 2, "d", five, 2))}, 0},
}

func nobodys(d *appsv1.Deployment) { d.OwnerReferences[0].Controller = nil }
func mirrored(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Containers[1].Image = "mirror.example.com/nginx:latest"
}
func oneAvailable(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 }
func oneUpdated(d *appsv1.Deployment)   { d.Status.UpdatedReplicas = 1 }
func threePods(d *appsv1.Deployment)    { d.Status.Replicas = 3 }
func unseen(d *appsv1.Deployment)       { d.Generation = 2 }

func TestLies(t *testing.T) {
	for _, row := range histories {
		t.Run(row.what, func(t *testing.T) {
			lies, err := historyOf(row.moments).Lies()
			footest.Must(t, err)
			if len(lies) != row.lies || slices.ContainsFunc(lies, func(lie string) bool { return !strings.Contains(lie, "Foo ns/foo") }) {
				t.Errorf("The lies are %q, want %d", lies, row.lies)
			}
		})
	}
}

func TestAFooThatWasReadyStaysInService(t *testing.T) {
	ready, serves := foo("a", 1, "one", nil, 1), func(name string) moment { return deployment(name, "a", 1) }
	ends := func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }
	for what, row := range map[string]struct {
		moments []moment
		want    []string
	}{
		"never ready":         {[]moment{foo("a", 1, "one", nil, 0)}, nil},
		"one after the other": {[]moment{serves("one"), ready, deployment("two", "a", 1, ends), serves("two"), gone(serves("one"))}, nil},
		"a gap": {
			[]moment{serves("one"), ready, gone(serves("one")), serves("two")},
			[]string{`Foo ns/foo had nothing in service from version 3, when "one" ended, until version 4`},
		},
		"nothing in the end": {[]moment{serves("one"), ready, deployment("one", "a", 1, ends)}, []string{"Foo ns/foo has nothing in service from version 3 on"}},
		"deleted":            {[]moment{serves("one"), ready, gone(foo("a", 1, "one", nil, 1)), gone(serves("one"))}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			found := historyOf(row.moments).Interruptions(func(child rows.Object) bool {
				return child.(*appsv1.Deployment).Status.AvailableReplicas > 0
			})
			if !slices.Equal(found, row.want) {
				t.Errorf("found %q, want %q", found, row.want)
			}
		})
	}
}
