// SPDX-License-Identifier: Apache-2.0

// What the controller writes, which the policy must accept.

package policy

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestTheControllerCreatesWhatFoosAskFor(t *testing.T) {
	eachKind(t, kind.testCreates)
}

func (r *row[T]) testCreates(t *testing.T, s *server) {
	for _, foo := range r.wanting() {
		if err := s.create(t, r.Desired(foo, r.seenBy(foo))); err != nil {
			t.Errorf("for the Foo %s: %v", foo.Name, err)
		}
	}
}

// TestTheControllerRepairsAnyDrift takes children with random content.
func TestTheControllerRepairsAnyDrift(t *testing.T) {
	eachKind(t, kind.testRepairs)
}

func (r *row[T]) testRepairs(t *testing.T, s *server) {
	r.testUpdates(t, s, func(T) {})
}

// testUpdates changes children with random content, and sends the patches that the
// controller then wants to make.
func (r *row[T]) testUpdates(t *testing.T, s *server, change func(T)) {
	t.Helper()
	var none T
	updates := 0
	for seed := range uint64(100) {
		for _, foo := range r.wanting() {
			child := r.random(t, foo, seed, .5)
			change(child)
			update := r.DesiredUpdate(child, foo, r.seenBy(foo))
			if update == none {
				continue
			}
			updates++
			if err := s.patch(t, child, r.patched(t, child, update)); err != nil {
				t.Fatalf("for the Foo %s, after %s: %v", foo.Name, r.DescribeDrift(child, foo, r.seenBy(foo)), err)
			}
		}
	}
	if updates == 0 {
		t.Error("no child with random content had drifted")
	}
}

// patched returns what the API server makes of the patch that is sent for an update.
func (r *row[T]) patched(t *testing.T, child, update T) T {
	t.Helper()
	patchType, patch, err := r.Patch(child, update)
	must(t, err)
	patched, err := footest.Patched(child, patchType, patch)
	must(t, err)
	return patched.(T)
}

// TestTheControllerAdoptsWhatAsksForIt takes children with random content.
func TestTheControllerAdoptsWhatAsksForIt(t *testing.T) {
	eachKind(t, kind.testAdoptions)
}

func (r *row[T]) testAdoptions(t *testing.T, s *server) {
	for _, foo := range r.wanting() {
		r.testUpdates(t, s, func(child T) { orphan(child, foo.Name) })
	}
}

// orphan makes a child one that a Foo owns among others and does not control, and that
// asks this Foo to adopt it.
func orphan(child object, foo string) {
	child.SetOwnerReferences([]metav1.OwnerReference{ownerRef("Foo", foo), ownerRef("ConfigMap", "other"), ownerRef("Foo", "bar")})
	child.SetAnnotations(map[string]string{"team": "blue", samplev1alpha1.AnnotationAdoptBy: foo})
}

// ownerRef returns a reference to an owner that is not the controller.
func ownerRef(kind, name string) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID("uid-" + name)}
	if kind == "Foo" {
		ref.APIVersion = samplev1alpha1.SchemeGroupVersion.String()
	}
	return ref
}

// The controller deletes a Foo's child in the background, so that what the child owns is
// deleted, too.
func TestTheControllerDeletesOnlyFoosChildren(t *testing.T) {
	eachKind(t, kind.testDeletes)
}

func (r *row[T]) testDeletes(t *testing.T, s *server) {
	foo := r.wanting()[0]
	own, nobodys, anothers := r.own(t, foo), r.own(t, foo), r.own(t, foo)
	orphan(nobodys, foo.Name)
	anothers.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "other.example.com/v1", Kind: "Foo", Name: "foo", UID: "uid-foo", Controller: new(true)}})
	if err := s.delete(t, own, metav1.DeletePropagationBackground); err != nil {
		t.Errorf("the child of a Foo: %v", err)
	}
	for what, err := range map[string]error{
		"the child of a Foo, without what it owns": s.delete(t, own, metav1.DeletePropagationOrphan),
		"the child of nobody":                      s.delete(t, nobodys, metav1.DeletePropagationBackground),
		"the child of a Foo of another group":      s.delete(t, anothers, metav1.DeletePropagationBackground),
	} {
		if !isRefused(t, err) {
			t.Errorf("%s may be deleted", what)
		}
	}
}
