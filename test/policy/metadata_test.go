// SPDX-License-Identifier: Apache-2.0

// The attempts of a thief with a child of any kind: its owners, labels, annotations and
// finalizers.

package policy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Parts of the policies' messages that all kinds have.
const (
	onlyForAFoo  = "only with a Foo as its controller and only owner"
	onlyAFoos    = "that a Foo controls, and not its owners"
	onlyOwn      = "only without labels, annotations, finalizers and settings of its own"
	keepMetadata = "labels, annotations and finalizers, but for"
)

var anyCreates = []attempt[object]{
	{"as the controller does", func(object) {}, ""},
	{"no owner", changeOwners(func([]metav1.OwnerReference) []metav1.OwnerReference { return nil }), onlyForAFoo},
	{"a Foo that is not the controller", changeOwner(0, func(r *metav1.OwnerReference) { r.Controller = new(false) }), onlyForAFoo},
	{"an owner of another kind", changeOwner(0, func(r *metav1.OwnerReference) { r.APIVersion, r.Kind = "v1", "ConfigMap" }), onlyForAFoo},
	{"a Foo of another group", changeOwner(0, func(r *metav1.OwnerReference) { r.APIVersion = "other.example.com/v1alpha1" }), onlyForAFoo},
	{"one more owner", changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference {
		return append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "uid-other"})
	}), onlyForAFoo},
	{"a label", label, onlyOwn},
	{"an annotation", func(o object) { o.SetAnnotations(map[string]string{"inject": "yes"}) }, onlyOwn},
	{"a finalizer", finalize, onlyOwn},
}

var anyUpdates = []attempt[object]{
	{"nothing", func(object) {}, ""},
	{"the owner, removed", changeOwners(func([]metav1.OwnerReference) []metav1.OwnerReference { return nil }), onlyAFoos},
	{"the owner, to another Foo", changeOwner(0, func(r *metav1.OwnerReference) { r.UID = "1" }), onlyAFoos},
	{"a label", label, keepMetadata},
	{"others' annotation", annotate("team", "red"), keepMetadata},
	{"others' annotation, removed", func(o object) { delete(o.GetAnnotations(), "team") }, keepMetadata},
	{"the consent to adoption, removed", func(o object) { delete(o.GetAnnotations(), samplev1alpha1.AnnotationAdoptBy) }, keepMetadata},
	{"all annotations, removed", func(o object) { o.SetAnnotations(nil) }, keepMetadata},
	{"a finalizer", finalize, keepMetadata},
}

// The owners are the ConfigMap, bar, and at last foo as the controller.
var anyAdoptions = []attempt[object]{
	{"as the controller does", func(object) {}, ""},
	{"without removing the consent", annotate(samplev1alpha1.AnnotationAdoptBy, "foo"), ""},
	{"with the consent for another Foo", annotate(samplev1alpha1.AnnotationAdoptBy, "bar"), keepMetadata},
	{"without becoming its controller", changeOwner(2, func(r *metav1.OwnerReference) { r.Controller = nil }), onlyAFoos},
	{"without the ConfigMap", changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference { return owners[1:] }), onlyAFoos},
	{"without the other Foo", changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference {
		return slices.Delete(owners, 1, 2)
	}), onlyAFoos},
	{"with the ConfigMap changed", changeOwner(0, func(r *metav1.OwnerReference) { r.Name = "another" }), onlyAFoos},
	{"beside its earlier reference", changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference {
		return append([]metav1.OwnerReference{ownerRef("Foo", "foo")}, owners...)
	}), onlyAFoos},
	{"for another Foo", changeOwner(2, func(r *metav1.OwnerReference) { r.Name = "bar" }), onlyAFoos},
	{"for a Foo with the ConfigMap's UID, in its place", changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference {
		owners[2].UID = "uid-other"
		return owners[1:]
	}), onlyAFoos},
	{"in another version of the API", changeOwner(2, func(r *metav1.OwnerReference) { r.APIVersion = "samplecontroller.k8s.io/v9" }), onlyAFoos},
	{"without others' annotation", func(o object) { delete(o.GetAnnotations(), "team") }, keepMetadata},
	{"without all annotations", func(o object) { o.SetAnnotations(nil) }, keepMetadata},
	{"with others' annotation changed", annotate("team", "red"), keepMetadata},
	{"with one more annotation", annotate("inject", "yes"), keepMetadata},
	{"with a label", label, keepMetadata},
}

func changeOwners(change func([]metav1.OwnerReference) []metav1.OwnerReference) func(object) {
	return func(o object) { o.SetOwnerReferences(change(slices.Clone(o.GetOwnerReferences()))) }
}

func changeOwner(index int, change func(*metav1.OwnerReference)) func(object) {
	return changeOwners(func(owners []metav1.OwnerReference) []metav1.OwnerReference {
		change(&owners[index])
		return owners
	})
}

func annotate(key, value string) func(object) {
	return func(o object) { o.GetAnnotations()[key] = value }
}

func label(o object) { o.SetLabels(map[string]string{"team": "red"}) }

func finalize(o object) { o.SetFinalizers([]string{"example.com/hold"}) }
