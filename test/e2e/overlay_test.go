// SPDX-License-Identifier: Apache-2.0

// An overlay that sets the namespace and the image, and the folder of CRDs.

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAnOverlayCanSetTheNamespaceAndTheImage checks that everything which refers to the
// namespace follows an overlay.
func TestAnOverlayCanSetTheNamespaceAndTheImage(t *testing.T) {
	t.Parallel()
	folder := writeOverlay(t, deployFolder, "namespace: elsewhere\n"+
		"images: [{name: sample-controller, newName: registry.example.com/sample-controller, newTag: v1}]\n")
	objects := objectsOf(t, folder)
	seen := map[string]int{}
	for _, object := range objects {
		seen[object.GetKind()]++
		if place := object.GetNamespace(); place == shippedNamespace {
			t.Errorf("%s %s is in %s", object.GetKind(), object.GetName(), place)
		}
		subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
		for _, subject := range subjects {
			if place := subject.(map[string]any)["namespace"]; place != "elsewhere" {
				t.Errorf("%s %s names an account in %s", object.GetKind(), object.GetName(), place)
			}
		}
		switch object.GetKind() {
		case "Namespace":
			if object.GetName() != "elsewhere" {
				t.Errorf("The namespace is %s", object.GetName())
			}
		case "Deployment":
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			if image := containers[0].(map[string]any)["image"]; image != "registry.example.com/sample-controller:v1" {
				t.Errorf("The image is %s", image)
			}
		}
	}
	for _, kind := range []string{"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRoleBinding", "ValidatingAdmissionPolicyBinding", "Deployment"} {
		if seen[kind] == 0 {
			t.Errorf("There is no %s in the overlay: %v", kind, seen)
		}
	}
}

// TestTheKustomizationListsEachCRD checks that each generated CRD is installed.
func TestTheKustomizationListsEachCRD(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(moduleRoot, filepath.Dir(crdFile))
	kustomization, err := readObject(filepath.Join(folder, "Kustomization"))
	if err != nil {
		t.Fatal(err)
	}
	listed, _, err := unstructured.NestedStringSlice(kustomization.Object, "resources")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Ext(file.Name()) == ".yaml" && !slices.Contains(listed, file.Name()) {
			t.Errorf("%s is not in %s/Kustomization", file.Name(), folder)
		}
	}
}
