/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// spend takes the consent to be adopted from a Deployment.
func spend(d *appsv1.Deployment) { delete(d.Annotations, samplev1alpha1.AnnotationAdoptBy) }

// allOf makes several changes at once.
func allOf(changes ...func(*appsv1.Deployment)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		for _, change := range changes {
			change(d)
		}
	}
}

// reference is that to an owner which is not the controller.
func reference(foo *samplev1alpha1.Foo) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"Foo","name":%q,"uid":%q}`, samplev1alpha1.SchemeGroupVersion, foo.Name, foo.UID)
}

// Who adopts may take away the annotation that asked for it, and nothing else.
func TestWithAStolenTokenAnAdoptionTakesTheConsentAlone(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.createDeployment(t, "others", 1)
	mergePatch(t, ns.deployments(), "others", `{"metadata":{"annotations":{"team":"blue","`+samplev1alpha1.AnnotationAdoptBy+`":"foo"}}}`)
	ns.awaitSettledOne(t, "others")
	adopt := func(d *appsv1.Deployment) {
		d.OwnerReferences = append(d.OwnerReferences, foosDeployment().OwnerReferences...)
		podOf(d).Containers = append(podOf(d).Containers, foosDeployment().Spec.Template.Spec.Containers...)
	}
	annotate := func(key, value string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Annotations[key] = value }
	}
	ns.tryUpdates(t, "others", []write{
		{"the owner", adopt, ""},
		{"the owner, and the consent away", allOf(adopt, spend), ""},
		{"the consent away, and no owner", spend, onlyAFoos},
		{"the owner, and the consent for another Foo", allOf(adopt, annotate(samplev1alpha1.AnnotationAdoptBy, "bar")), keepMetadata},
		{"the owner, and others' annotation away", allOf(adopt, spend, func(d *appsv1.Deployment) { delete(d.Annotations, "team") }), keepMetadata},
		{"the owner, and all annotations away", allOf(adopt, func(d *appsv1.Deployment) { d.Annotations = nil }), keepMetadata},
		{"the owner, and others' annotation changed", allOf(adopt, spend, annotate("team", "red")), keepMetadata},
		{"the owner, and one more annotation", allOf(adopt, spend, annotate("inject", "yes")), keepMetadata},
		{"the owner, and others' label away", allOf(adopt, spend, func(d *appsv1.Deployment) { d.Labels = nil }), keepMetadata},
	})
}

// A Foo that is an owner already becomes the controller in the place of that.
func TestWithAStolenTokenAnAdoptionLeavesTheOtherOwners(t *testing.T) {
	t.Parallel()
	needsToBeAlone(t) // the Foo has to stay without a controller
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
	ns.awaitSettledOne(t, "others")
	controlling := func(f *samplev1alpha1.Foo) metav1.OwnerReference {
		return owner(func(r *metav1.OwnerReference) { r.Name, r.UID = f.Name, f.UID })
	}
	// become has owners, by their place, followed by a controller.
	become := func(controller metav1.OwnerReference, places ...int) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			var owners []metav1.OwnerReference
			for _, place := range places {
				owners = append(owners, d.OwnerReferences[place])
			}
			owners = append(owners, controller)
			d.OwnerReferences = owners
			podOf(d).Containers = append(podOf(d).Containers, foosDeployment().Spec.Template.Spec.Containers...)
		}
	}
	const foos, configMaps, bars = 0, 1, 2
	ns.tryUpdates(t, "others", []write{
		{"the Foo, in the place of its reference", become(controlling(foo), configMaps, bars), ""},
		{"the Foo, and another Foo's reference away", become(controlling(foo), configMaps), onlyAFoos},
		{"the Foo, and the ConfigMap's reference away", become(controlling(foo), bars), onlyAFoos},
		{"the Foo, beside its reference", become(controlling(foo), foos, configMaps, bars), onlyAFoos},
		{"another Foo, in the place of the first one's reference", become(controlling(bar), configMaps, bars), onlyAFoos},
		{"a Foo of the ConfigMap's UID, in its place", become(owner(func(r *metav1.OwnerReference) { r.UID = other.UID }), foos, bars), onlyAFoos},
		{"the Foo, and others' reference changed", allOf(become(controlling(foo), configMaps, bars), func(d *appsv1.Deployment) {
			d.OwnerReferences[0].Name = "another"
		}), onlyAFoos},
	})
}
