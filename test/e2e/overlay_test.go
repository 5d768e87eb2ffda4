// SPDX-License-Identifier: Apache-2.0

// Overlays that change the installation: the admission policy and the flow schema still
// apply under other names.

package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// overlays are kustomizations as users write them. They give the account another name,
// another namespace, or both.
var overlays = []struct{ name, text string }{
	{"as shipped", ""},
	{"with a prefix", "namePrefix: team-\n"},
	{"with a suffix", "nameSuffix: -blue\n"},
	{"with a namespace", "namespace: elsewhere\n"},
	{"with all of them", "namePrefix: team-\nnameSuffix: -blue\nnamespace: elsewhere\n"},
}

// TestAnOverlayCannotTurnOffTheAdmissionPolicy checks that the admission policy and the
// flow schema for the Lease apply to the account, whatever an overlay names it. It
// applies the overlays one after the other; objects of earlier ones are about other
// accounts.
func TestAnOverlayCannotTurnOffTheAdmissionPolicy(t *testing.T) {
	t.Parallel()
	for variant, folder := range map[string]string{"for all namespaces": deployFolder, "for one namespace": deployFolder + "/namespaced"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			s := newSite(newBareCluster(t))
			var thief *thief
			for _, overlay := range overlays {
				t.Run(overlay.name, func(t *testing.T) {
					text := overlay.text + "images: [{name: sample-controller, newTag: v1}]\n"
					thief = s.applyOverlay(t, writeOverlay(t, folder, text))
					thief.isRestrictedByThePolicy(t)
					thief.hasAFlowForTheLease(t)
				})
			}
			s.leavesOthersAlone(t, thief)
		})
	}
}

// leavesOthersAlone checks that the policy does not refuse others' objects if its
// parameter is missing: because in the middle of an upgrade the binding does not name it
// yet, or because the account is deleted.
func (s *site) leavesOthersAlone(t *testing.T, thief *thief) {
	t.Helper()
	for binding := range strings.FieldsSeq(s.kubectl(t, "get", "validatingadmissionpolicybindings", "-o=name")) {
		s.kubectl(t, "patch", binding, "--type=json", `-p=[{"op":"remove","path":"/spec/paramRef"}]`)
	}
	mine := thief.creation(t, footest.Drifted)
	thief.await(t, "the bindings without a parameter are in force", mine, func(err error) bool { return err == nil || !testcluster.IsDeniedByPolicy(err) })
	others := func() {
		_, err := s.dynamic.Resource(footest.Primary.Resource).Namespace(metav1.NamespaceDefault).Create(t.Context(),
			kindIn{Kind: footest.Primary}.untyped(t, footest.Unstored("others")), metav1.CreateOptions{DryRun: dryRun})
		if err != nil {
			t.Error(err)
		}
	}
	others()
	s.kubectl(t, "delete", "serviceaccounts", "--all", "-A")
	others()
}

// writeOverlay writes a kustomization with one of the shipped folders as its base, and
// returns its folder.
func writeOverlay(t *testing.T, base, text string) string {
	t.Helper()
	folder := t.TempDir()
	base, err := filepath.Abs(base)
	if err == nil {
		base, err = filepath.Rel(folder, base)
	}
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, folder, "kustomization.yaml", text+"resources: ['"+filepath.ToSlash(base)+"']\n")
	return folder
}

// thief is somebody who stole the token of an installation's account.
type thief struct {
	admin kubernetes.Interface
	// home is the namespace of the account. namespace is one in which it may write
	// children.
	home, namespace string
	client          kubernetes.Interface
	children        dynamic.NamespaceableResourceInterface
	// flow is the UID of the flow schema that applied to the last request.
	flow atomic.Value
}

// applyOverlay installs an overlay and steals the token of its account.
func (s *site) applyOverlay(t *testing.T, folder string) *thief {
	t.Helper()
	objects := objectsOf(t, folder)
	s.kubectl(t, "apply", "-k="+folder)
	s.kubectl(t, "wait", "--for=condition=Established", "crd/"+crdName)
	th := &thief{admin: s.kube, namespace: metav1.NamespaceDefault}
	var config *rest.Config
	var err error
	for _, object := range objects {
		switch {
		case object.GetKind() == "ServiceAccount":
			th.home = object.GetNamespace()
			config, err = testcluster.ConfigOf(t.Context(), s.config, object.GetNamespace(), object.GetName())
		case object.GetKind() == "Role" && writesChildren(object):
			th.namespace = object.GetNamespace()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				th.flow.Store(response.Header.Get("X-Kubernetes-PF-FlowSchema-UID"))
			}
			return response, err
		})
	})
	if th.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	th.children = client.Resource(footest.Primary.Resource)
	return th
}

// roundTripper is an http.RoundTripper made of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// writesChildren reports whether a role grants the creation of children.
func writesChildren(role *unstructured.Unstructured) bool {
	grants, err := grantsOfRole(role)
	for _, grant := range grants {
		if grant.resource == childResource && grant.verb == "create" {
			return true
		}
	}
	return err != nil
}

// isRestrictedByThePolicy waits until the policy accepts a child like the
// controller's and refuses another.
func (th *thief) isRestrictedByThePolicy(t *testing.T) {
	t.Helper()
	// The API server learns of roles, policies and kinds by watches, so wait.
	th.await(t, "a Foo's child is accepted", th.creation(t), testcluster.Succeeded)
	th.await(t, "any other object is refused by the policy", th.creation(t, footest.Drifted), testcluster.IsDeniedByPolicy)
}

// creation returns a function that tries to create a Foo's child, changed.
func (th *thief) creation(t *testing.T, changes ...footest.ChildOption) func() error {
	t.Helper()
	made := footest.Unstored("made-up") // not "foo": the program may have that name, and a Deployment
	for _, change := range changes {
		change(made)
	}
	sent := kindIn{Kind: footest.Primary}.untyped(t, made)
	return func() error {
		_, err := th.children.Namespace(th.namespace).Create(t.Context(), sent, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
}

// hasAFlowForTheLease checks the flow schemas that apply to requests, which the API
// server returns in a header.
func (th *thief) hasAFlowForTheLease(t *testing.T) {
	t.Helper()
	schemas, err := th.admin.FlowcontrolV1().FlowSchemas().List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + shippedName})
	if err != nil {
		t.Fatal(err)
	}
	ours := map[any]bool{}
	for i := range schemas.Items {
		ours[string(schemas.Items[i].UID)] = true
	}
	readLease := func() error {
		_, err := th.client.CoordinationV1().Leases(th.home).Get(t.Context(), shippedName, metav1.GetOptions{})
		return err
	}
	th.await(t, "our flow schema applies to a request for a Lease", readLease, func(error) bool { return ours[th.flow.Load()] })
	// Other requests keep their flow schema, although the thief may flood them.
	leases := th.client.CoordinationV1()
	for what, request := range map[string]func(){
		"a child":           func() { _, _ = th.children.Namespace(th.namespace).Get(t.Context(), "any", metav1.GetOptions{}) },
		"a Lease elsewhere": func() { _, _ = leases.Leases("kube-system").Get(t.Context(), shippedName, metav1.GetOptions{}) },
		"all Leases":        func() { _, _ = leases.Leases(th.home).List(t.Context(), metav1.ListOptions{}) },
	} {
		if request(); ours[th.flow.Load()] {
			t.Errorf("The flow schema for the Lease applies to a request for %s", what)
		}
	}
}

// await repeats a request until wanted accepts its error.
func (th *thief) await(t *testing.T, what string, request func() error, wanted func(error) bool) {
	t.Helper()
	err := testcluster.AwaitAnswer(t.Context(), time.Minute, what, func(context.Context) error { return request() }, wanted)
	if err != nil {
		t.Fatalf("%v; the flow schema was %v", err, th.flow.Load())
	}
}

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
