// SPDX-License-Identifier: Apache-2.0

// The single file that make install-yaml writes, and the CRD within an installation.

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The documents' example, with a digest after the tag.
const (
	exampleImage  = "registry.example.com:5000/team/sample-controller"
	exampleDigest = "sha256:4b8ffe8c5cd8b2ed94e1d5bd1f2ec0dbf3a5cbe1b3f6dd4f7f4b2c7e2f0e2a11"
	crdKind       = "CustomResourceDefinition"
)

// TestTheInstallFileEqualsTheFolder checks that the file of make install-yaml is the
// rendered folder with the image set, and that an API server accepts it by server-side
// apply, which requires each field to be valid as written.
func TestTheInstallFileEqualsTheFolder(t *testing.T) {
	t.Parallel()
	own := newSite(newBareCluster(t))
	file := filepath.Join(t.TempDir(), "install.yaml")
	script, err := filepath.Abs(moduleRoot + "/hack/install-yaml.sh")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), script, exampleImage+":v1@"+exampleDigest, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	inFile, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	overlay := writeOverlay(t, deployFolder, "images: [{name: sample-controller, newName: '"+exampleImage+"', newTag: v1, digest: '"+exampleDigest+"'}]\n")
	if want := kustomize(t, overlay); string(inFile) != want {
		t.Errorf("The file is\n%s\nwant the output of kustomize:\n%s", inFile, want)
	}
	own.kubectl(t, "apply", "--server-side", "-f="+file)
	own.kubectl(t, "apply", "--server-side", "-f="+file)
	own.kubectl(t, "get", "-f="+file)
	image := own.kubectl(t, "get", "deployment", shippedName, "-n="+shippedNamespace, "-o=jsonpath={.spec.template.spec.containers[0].image}")
	if want := exampleImage + ":v1@" + exampleDigest; image != want {
		t.Errorf("The image is %s, want %s", image, want)
	}
}

// TestAnOverlayCanLeaveOutTheCRD checks that an overlay can remove the CRD, for users who
// install it separately, without removing anything else.
func TestAnOverlayCanLeaveOutTheCRD(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{deployFolder, deployFolder + "/namespaced"} {
		whole := objectsOf(t, folder)
		without := objectsOf(t, writeOverlay(t, folder, "patches:\n- target: {kind: CustomResourceDefinition}\n"+
			"  patch: '{$patch: delete, kind: CustomResourceDefinition, metadata: {name: any}}'\n"))
		whole = slices.DeleteFunc(whole, func(o *unstructured.Unstructured) bool { return o.GetKind() == crdKind })
		if got, want := namesOf(without), namesOf(whole); !slices.Equal(got, want) {
			t.Errorf("Without the CRD %s has %v, want %v", folder, got, want)
		}
	}
}

// TestTheCRDIsProtectedFromPruning checks the annotations that stop deployment tools from
// deleting the CRD, and all Foos with it.
func TestTheCRDIsProtectedFromPruning(t *testing.T) {
	t.Parallel()
	for _, object := range objectsOf(t, deployFolder) {
		if object.GetKind() != crdKind {
			continue
		}
		for key, want := range map[string]string{
			"kustomize.toolkit.fluxcd.io/prune": "disabled",
			"argocd.argoproj.io/sync-options":   "Prune=false,Delete=false",
			"helm.sh/resource-policy":           "keep",
		} {
			if got := object.GetAnnotations()[key]; got != want {
				t.Errorf("%s has %s: %q, want %q", object.GetName(), key, got, want)
			}
		}
		return
	}
	t.Error("There is no CRD")
}

// namesOf returns the sorted kinds, namespaces and names of objects.
func namesOf(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
	}
	slices.Sort(names)
	return names
}
