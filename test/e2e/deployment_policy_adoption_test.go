// SPDX-License-Identifier: Apache-2.0

// The admission policy: which adoptions it accepts.

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// spend removes the consent to adoption from a Deployment.
func spend(d *appsv1.Deployment) { delete(d.Annotations, samplev1alpha1.AnnotationAdoptBy) }

// allOf combines changes.
func allOf(changes ...func(*appsv1.Deployment)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		for _, change := range changes {
			change(d)
		}
	}
}

// reference returns a reference to an owner that is not the controller.
func reference(foo *samplev1alpha1.Foo) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"Foo","name":%q,"uid":%q}`, samplev1alpha1.SchemeGroupVersion, foo.Name, foo.UID)
}

// TestWithAStolenTokenAnAdoptionRemovesOnlyTheConsent checks that an adoption may remove
// the annotation that consents to it, and nothing else.
func TestWithAStolenTokenAnAdoptionRemovesOnlyTheConsent(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.createDeployment(t, "others", 1)
	mergePatch(t, ns.deployments(), "others", `{"metadata":{"annotations":{"team":"blue","`+samplev1alpha1.AnnotationAdoptBy+`":"foo"}}}`)
	ns.settledDeployment(t, "others")
	adopt := func(d *appsv1.Deployment) {
		d.OwnerReferences = append(d.OwnerReferences, foosDeployment().OwnerReferences...)
		podOf(d).Containers = append(podOf(d).Containers, addedContainer())
	}
	annotate := func(key, value string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Annotations[key] = value }
	}
	ns.tryUpdates(t, "others", []write{
		{"the owner", adopt, ""},
		{"the owner, without the consent", allOf(adopt, spend), ""},
		{"no owner, without the consent", spend, onlyAFoos},
		{"the owner, with the consent for another Foo", allOf(adopt, annotate(samplev1alpha1.AnnotationAdoptBy, "bar")), keepMetadata},
		{"the owner, without others' annotation", allOf(adopt, spend, func(d *appsv1.Deployment) { delete(d.Annotations, "team") }), keepMetadata},
		{"the owner, without all annotations", allOf(adopt, func(d *appsv1.Deployment) { d.Annotations = nil }), keepMetadata},
		{"the owner, with others' annotation changed", allOf(adopt, spend, annotate("team", "red")), keepMetadata},
		{"the owner, with one more annotation", allOf(adopt, spend, annotate("inject", "yes")), keepMetadata},
		{"the owner, without others' label", allOf(adopt, spend, func(d *appsv1.Deployment) { d.Labels = nil }), keepMetadata},
	})
}

// TestWithAStolenTokenAnAdoptionKeepsTheOtherOwners checks that only the adopting Foo's
// own reference may be replaced by that of the controller.
func TestWithAStolenTokenAnAdoptionKeepsTheOtherOwners(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t) // the Foo must not be reconciled
	ns := newNamespace(t)
	foo := ns.createFoo(t, newFoo("foo"))
	bar := ns.createFoo(t, newFoo("bar"))
	other, err := ns.in.kube.CoreV1().ConfigMaps(ns.name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.createDeployment(t, "others", 1)
	others := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":"other","uid":%q}`, other.UID)
	mergePatch(t, ns.deployments(), "others", fmt.Sprintf(`{"metadata":{"annotations":{"`+samplev1alpha1.AnnotationAdoptBy+`":"foo"},"ownerReferences":[%s,%s,%s]}}`,
		reference(foo), others, reference(bar)))
	ns.settledDeployment(t, "others")
	controlling := func(f *samplev1alpha1.Foo) metav1.OwnerReference {
		return owner(func(r *metav1.OwnerReference) { r.Name, r.UID = f.Name, f.UID })
	}
	// become keeps the owners at some indexes and appends a controller.
	become := func(controller metav1.OwnerReference, indexes ...int) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			var owners []metav1.OwnerReference
			for _, index := range indexes {
				owners = append(owners, d.OwnerReferences[index])
			}
			owners = append(owners, controller)
			d.OwnerReferences = owners
			podOf(d).Containers = append(podOf(d).Containers, addedContainer())
		}
	}
	const foos, configMaps, bars = 0, 1, 2
	ns.tryUpdates(t, "others", []write{
		{"the Foo, in place of its reference", become(controlling(foo), configMaps, bars), ""},
		{"the Foo, without another Foo's reference", become(controlling(foo), configMaps), onlyAFoos},
		{"the Foo, without the ConfigMap's reference", become(controlling(foo), bars), onlyAFoos},
		{"the Foo, beside its reference", become(controlling(foo), foos, configMaps, bars), onlyAFoos},
		{"another Foo, in place of the first one's reference", become(controlling(bar), configMaps, bars), onlyAFoos},
		{"a Foo with the ConfigMap's UID, in its place", become(owner(func(r *metav1.OwnerReference) { r.UID = other.UID }), foos, bars), onlyAFoos},
		{"the Foo, with others' reference changed", allOf(become(controlling(foo), configMaps, bars), func(d *appsv1.Deployment) {
			d.OwnerReferences[0].Name = "another"
		}), onlyAFoos},
	})
}
