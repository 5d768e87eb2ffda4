// SPDX-License-Identifier: Apache-2.0

// Overlays that change the installation: the admission policy and the flow schema still
// apply under other names.

package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

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

// withAnImage sets an image for the program, which the policy of Pods requires.
const withAnImage = "images: [{name: sample-controller, newTag: v1}]\n"

// TestAnOverlayCannotTurnOffTheAdmissionPolicy checks that the admission policy and the
// flow schema for the Lease apply to the account, whatever an overlay names it. It
// applies the overlays one after the other; objects of earlier ones are about other
// accounts.
func TestAnOverlayCannotTurnOffTheAdmissionPolicy(t *testing.T) {
	t.Parallel()
	for variant, folder := range map[string]string{"all namespaces": deployFolder, "one namespace": namespacedFolder} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			c := newBareCluster(t)
			var thief *thief
			for _, overlay := range overlays {
				t.Run(overlay.name, func(t *testing.T) {
					thief = c.applyOverlay(t, writeOverlay(t, folder, overlay.text+withAnImage))
					thief.isRestrictedByThePolicy(t)
					thief.hasAFlowForTheLease(t)
				})
			}
			c.leavesOthersAlone(t, thief)
		})
	}
}

// leavesOthersAlone checks that the policy does not refuse others' objects if its
// parameter is missing: because in the middle of an upgrade the binding does not name it
// yet, or because the account is deleted.
func (c *testCluster) leavesOthersAlone(t *testing.T, thief *thief) {
	t.Helper()
	for binding := range strings.FieldsSeq(c.kubectl(t, "get", "validatingadmissionpolicybindings", "-o=name")) {
		c.kubectl(t, "patch", binding, "--type=json", `-p=[{"op":"remove","path":"/spec/paramRef"}]`)
	}
	mine := thief.creation(footest.Drifted)
	thief.await(t, "the bindings without a parameter are in force", mine, func(err error) bool {
		return !testcluster.IsDeniedByPolicy(err)
	})
	others := func() {
		children := c.inDefault().primary().children()
		_, err := children.Create(t.Context(), footest.Unstored("others"), metav1.CreateOptions{DryRun: dryRun})
		footest.Must(t, err)
	}
	others()
	c.kubectl(t, "delete", "serviceaccounts", "--all", "-A")
	others()
}

// thief is somebody who stole the token of an installation's account.
type thief struct {
	// The clients are those of the account.
	*testCluster

	admin kubernetes.Interface
	// home is the namespace of the account. children are those in a namespace in which it
	// may write them.
	home     string
	children objects
	// flow is the UID of the flow schema that applied to the last request.
	flow atomic.Value
}

// applyOverlay installs an overlay and steals the token of its account. If the overlay sets
// another namespace, nothing refers to the shipped one.
func (c *testCluster) applyOverlay(t *testing.T, folder string) *thief {
	t.Helper()
	c.kubectl(t, "apply", "-k="+folder)
	c.kubectl(t, "wait", "--for=condition=Established", "crd/"+crdName)
	th := &thief{admin: c.kube}
	writes := metav1.NamespaceDefault
	objects := objectsOf(t, folder)
	for _, object := range objects {
		switch {
		case object.GetKind() == "ServiceAccount":
			th.home = object.GetNamespace()
			config, err := testcluster.ConfigOf(t.Context(), c.config, th.home, object.GetName())
			footest.Must(t, err)
			config.Wrap(th.noteFlow)
			th.testCluster = &testCluster{config: config}
			footest.Must(t, th.makeClients())
		case object.GetKind() == "Role" && writesChildren(object):
			writes = object.GetNamespace()
		}
	}
	for _, object := range objects {
		text, err := object.MarshalJSON()
		footest.Must(t, err)
		if th.home != shippedNamespace && strings.Contains(string(text), `"namespace":"`+shippedNamespace+`"`) {
			t.Errorf("The overlay sets a namespace, and this object refers to the shipped one: %s", text)
		}
	}
	th.children = (&namespace{writes, th.testCluster}).objects(footest.Primary)
	return th
}

// roundTripper is an http.RoundTripper made of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// noteFlow notes which flow schema applied to a request, which the API server returns in a
// header.
func (th *thief) noteFlow(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil {
			th.flow.Store(response.Header.Get("X-Kubernetes-PF-FlowSchema-UID"))
		}
		return response, err
	})
}

// writesChildren reports whether a role grants the creation of children.
func writesChildren(role *unstructured.Unstructured) bool {
	grants, err := grantsOfRole(role)
	return err != nil || slices.ContainsFunc(grants, func(g grant) bool {
		return g.resource == footest.Primary.Resource.Resource && g.verb == "create"
	})
}

// isRestrictedByThePolicy waits until the policy accepts a child like the
// controller's and refuses another.
func (th *thief) isRestrictedByThePolicy(t *testing.T) {
	t.Helper()
	// The API server learns of roles, policies and kinds by watches, so wait.
	th.await(t, "a Foo's child is accepted", th.creation(), testcluster.Succeeded)
	th.await(t, "any other object is refused by the policy", th.creation(footest.Drifted), testcluster.IsDeniedByPolicy)
}

// creation returns a function that tries to create a Foo's child, changed.
func (th *thief) creation(changes ...footest.ChildOption) func(context.Context) error {
	made := footest.Unstored("made-up") // not "foo": the program may have that name, and a Deployment
	for _, change := range changes {
		change(made)
	}
	return func(ctx context.Context) error {
		_, err := th.children.Create(ctx, made, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
}

// hasAFlowForTheLease checks the flow schemas that apply to requests.
func (th *thief) hasAFlowForTheLease(t *testing.T) {
	t.Helper()
	shipped := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + shippedName}
	schemas, err := th.admin.FlowcontrolV1().FlowSchemas().List(t.Context(), shipped)
	footest.Must(t, err)
	ours := map[any]bool{}
	for i := range schemas.Items {
		ours[string(schemas.Items[i].UID)] = true
	}
	leases := th.kube.CoordinationV1()
	readLease := func(ctx context.Context) error {
		_, err := leases.Leases(th.home).Get(ctx, shippedName, metav1.GetOptions{})
		return err
	}
	isOurs := func(error) bool { return ours[th.flow.Load()] }
	th.await(t, "our flow schema applies to a request for a Lease", readLease, isOurs)
	// Other requests keep their flow schema, although the thief may flood them.
	for what, request := range map[string]func(){
		"a child":           func() { _, _ = th.children.Get(t.Context(), "any", metav1.GetOptions{}) },
		"a Lease elsewhere": func() { _, _ = leases.Leases("kube-system").Get(t.Context(), shippedName, metav1.GetOptions{}) },
		"all Leases":        func() { _, _ = leases.Leases(th.home).List(t.Context(), metav1.ListOptions{}) },
	} {
		if request(); ours[th.flow.Load()] {
			t.Errorf("The flow schema for the Lease applies to a request for %s", what)
		}
	}
}

// await repeats a request until wanted accepts its error.
func (th *thief) await(t *testing.T, what string, request func(context.Context) error, wanted func(error) bool) {
	t.Helper()
	if err := testcluster.AwaitAnswer(t.Context(), patience, what, request, wanted); err != nil {
		t.Fatalf("%v; the flow schema was %v", err, th.flow.Load())
	}
}
