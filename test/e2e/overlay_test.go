// SPDX-License-Identifier: Apache-2.0

// Overlays that change the installation: the admission policy and the flow schema still
// apply under other names.

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
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
			c := newOwnCluster(t, testcluster.ControlPlaneOnly)
			var installed *account
			for _, overlay := range overlays {
				t.Run(overlay.name, func(t *testing.T) {
					installed = c.applyOverlay(t, writeOverlay(t, folder, overlay.text+withAnImage))
					// The API server learns of roles, policies and kinds by watches, so wait.
					footest.Must(t, installed.awaitFoosAsOwners(t.Context(), installed.writes()))
					footest.Must(t, installed.awaitPolicies(t.Context(), installed.writes()))
					c.hasAFlowForTheLease(t, installed)
				})
			}
			c.leavesOthersAlone(t, installed)
		})
	}
}

// leavesOthersAlone checks that the policy does not refuse others' objects if its
// parameter is missing: because in the middle of an upgrade the binding does not name it
// yet, or because the account is deleted.
func (c *testCluster) leavesOthersAlone(t *testing.T, installed *account) {
	t.Helper()
	for binding := range strings.FieldsSeq(c.kubectl(t, "get", "validatingadmissionpolicybindings", "-o=name")) {
		c.kubectl(t, "patch", binding, "--type=json", `-p=[{"op":"remove","path":"/spec/paramRef"}]`)
	}
	installed.await(t, "the bindings without a parameter are in force", footest.Drifted, func(err error) bool {
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

// writes returns a namespace in which an installed account may write children.
func (a *account) writes() string {
	if a.namespace != shippedNamespace {
		return a.namespace // an overlay's namespace is also that of the Role
	}
	return watchedNamespace
}

// await tries to create a Foo's child, changed, until wanted accepts the answer.
func (a *account) await(t *testing.T, what string, change footest.ChildOption, wanted func(error) bool) {
	t.Helper()
	child := footest.Unstored("made-up") // not "foo": the program may have that name, and a Deployment
	change(child)
	footest.Must(t, testcluster.AwaitCreation(t.Context(), a.config, a.writes(), footest.Primary.Resource, what, child, wanted))
}

// applyOverlay installs an overlay, and returns its account. If the overlay sets another
// namespace, nothing refers to the shipped one.
func (c *testCluster) applyOverlay(t *testing.T, folder string) *account {
	t.Helper()
	c.kubectl(t, "apply", "--server-side", "-k="+folder)
	c.kubectl(t, "wait", "--for=condition=Established", "crd/"+crdName)
	var installed *account
	objects := objectsOf(t, folder)
	for _, object := range objects {
		if object.GetKind() == "ServiceAccount" {
			var err error
			installed, err = useAccount(t.Context(), c, t.TempDir(), object.GetNamespace(), object.GetName())
			footest.Must(t, err)
		}
	}
	text, err := json.Marshal(objects)
	footest.Must(t, err)
	if installed.namespace != shippedNamespace && strings.Contains(string(text), `"namespace":"`+shippedNamespace+`"`) {
		t.Errorf("The overlay sets a namespace, and an object refers to the shipped one:\n%s", text)
	}
	return installed
}

// hasAFlowForTheLease checks the flow schemas that apply to requests of an account.
func (c *testCluster) hasAFlowForTheLease(t *testing.T, a *account) {
	t.Helper()
	const leases = "/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s"
	isOurs := func(path string) bool {
		// The API server returns the flow schema of a request in a header.
		uid := ask(t, a.config.Host+path, a.config.BearerToken).header.Get("X-Kubernetes-PF-FlowSchema-UID")
		shipped := "-o=jsonpath={.items[*].metadata.uid}"
		return uid != "" && strings.Contains(c.kubectl(t, "get", "flowschemas", "-l=app.kubernetes.io/name="+shippedName, shipped), uid)
	}
	awaitThat(t, "our flow schema applies to a request for the Lease", func(context.Context) error {
		if !isOurs(fmt.Sprintf(leases, a.namespace, shippedName)) {
			return errors.New("another does")
		}
		return nil
	})
	// Other requests keep their flow schema, although a thief of the token may flood them.
	for what, path := range map[string]string{
		"Foos":              "/apis/" + samplev1alpha1.SchemeGroupVersion.String() + "/foos",
		"a Lease elsewhere": fmt.Sprintf(leases, "kube-system", shippedName),
		"all Leases":        fmt.Sprintf(leases, a.namespace, ""),
	} {
		if isOurs(path) {
			t.Errorf("The flow schema for the Lease applies to a request for %s", what)
		}
	}
}
