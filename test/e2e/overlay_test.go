// SPDX-License-Identifier: Apache-2.0

// Overlays that change the installation: the admission policy and the flow schema still
// apply under other names.

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
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
		deployments := c.kube.AppsV1().Deployments(metav1.NamespaceDefault)
		_, err := deployments.Create(t.Context(), footest.UnstoredDeployment("others"), metav1.CreateOptions{DryRun: dryRun})
		footest.Must(t, err)
	}
	others()
	c.kubectl(t, "delete", "serviceaccounts", "--all", "-A")
	others()
}

// writes returns a namespace in which an installed account may write children.
func (a *account) writes() string {
	if a.namespace != shipped {
		return a.namespace // an overlay's namespace is also that of the Role
	}
	return metav1.NamespaceDefault // the one that the shipped variant watches
}

// await tries to create a Foo's child, changed, until wanted accepts the answer.
func (a *account) await(t *testing.T, what string, change footest.ChildOption, wanted func(error) bool) {
	t.Helper()
	child := footest.Unstored("made-up") // not "foo": the program may have that name, and a Deployment
	change(child)
	footest.Must(t, testcluster.AwaitCreation(t.Context(), a.Config, a.writes(), footest.Primary.Resource, what, child, wanted))
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
			installed, err = c.accountOf(t.Context(), object.GetNamespace(), object.GetName())
			footest.Must(t, err)
		}
	}
	text, err := json.Marshal(objects)
	footest.Must(t, err)
	if installed.namespace != shipped && strings.Contains(string(text), `"namespace":"`+shipped+`"`) {
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
		uid := ask(t, a.Host+path, a.BearerToken).header.Get("X-Kubernetes-PF-FlowSchema-UID")
		ours := c.kubectl(t, "get", "flowschemas", "-l=app.kubernetes.io/name="+shipped, "-o=jsonpath={.items[*].metadata.uid}")
		return uid != "" && strings.Contains(ours, uid)
	}
	footest.Must(t, testcluster.Await(t.Context(), patience, "our flow schema applies to a request for the Lease", func(context.Context) error {
		if !isOurs(fmt.Sprintf(leases, a.namespace, shipped)) {
			return errors.New("another does")
		}
		return nil
	}))
	// Other requests keep their flow schema, although a thief of the token may flood them.
	for what, path := range map[string]string{
		"Foos":              "/apis/" + samplev1alpha1.SchemeGroupVersion.String() + "/foos",
		"a Lease elsewhere": fmt.Sprintf(leases, "kube-system", shipped),
		"all Leases":        fmt.Sprintf(leases, a.namespace, ""),
	} {
		if isOurs(path) {
			t.Errorf("The flow schema for the Lease applies to a request for %s", what)
		}
	}
}

// TestAnOverlayNamesTheMirrorInOnePlace checks that one line of an overlay sets the image
// for both the program and the policy, so that the policy accepts this image and no
// other. Existing Deployments follow. The writes of the old leader are refused until a
// new leader has the Lease; TestTwoInstallationsInOneNamespace also allows the earlier image.
func TestAnOverlayNamesTheMirrorInOnePlace(t *testing.T) {
	t.Parallel()
	c := newOwnCluster(t, testcluster.ControlPlaneOnly)
	const mirror = "registry.example.com/mirror/nginx:1.29"
	tr := inNamespaceOf(t, c, metav1.NamespaceDefault)

	install := func(text string) *account { return c.applyOverlay(t, writeOverlay(t, deployFolder, text+withAnImage)) }

	install("").runsOnly(t, "nginx:latest", mirror)
	old := tr.startInstalled(shipped)
	tr.createFoo("old", "old", 1)
	tr.awaitImage("old", "nginx:latest")

	install(setsImage(mirror)).runsOnly(t, mirror, "nginx:latest")
	tr.createFoo("new", "new", 1)
	tr.awaitReason("new", samplev1alpha1.ReasonDeploymentFailed, "The API server refused: ", "only with the image "+mirror)
	tr.stop(old)

	tr.startInstalled(shipped)
	tr.awaitImage("new", mirror)
	tr.awaitImage("old", mirror)
}

// runsOnly waits until the policy accepts a Foo's Deployment with an image and refuses
// one with another image.
func (a *account) runsOnly(t *testing.T, image, other string) {
	t.Helper()
	a.await(t, "the image is accepted", footest.WithImage(image), testcluster.Succeeded)
	a.await(t, "another image is refused", footest.WithImage(other), testcluster.IsDeniedByPolicy)
}

// setsImage is what an overlay says to run an image, and allowsEarlier to allow the one of
// before, too.
func setsImage(image string) string {
	return fmt.Sprintf("commonAnnotations: {%s: '%s'}\n", imageAnnotation, image)
}

func allowsEarlier(image string) string {
	return fmt.Sprintf(`patches:
- target: {kind: ServiceAccount, name: %s}
  patch: '{apiVersion: v1, kind: ServiceAccount, metadata: {name: any, annotations: {%s: %q}}}'
`, shipped, earlierAnnotation, image)
}

// earlierAnnotation names another image that the policy allows.
const earlierAnnotation = "samplecontroller.k8s.io/earlier-image"

func (tr *trial) awaitImage(deployment, image string) {
	tr.t.Helper()
	tr.awaitDeployment("has the image "+image, deployment, func(d *appsv1.Deployment) error {
		for _, container := range d.Spec.Template.Spec.Containers {
			if container.Name == "nginx" && container.Image == image {
				return nil
			}
		}
		return errors.New("it has another")
	})
}

// installation is one of several in the namespace of the shipped one.
type installation struct {
	*trial

	// prefix begins its names, and folder is its overlay.
	prefix, folder string
}

// newInstallation copies the manifests, as docs/operations.md says, and names a namespace to
// watch in the copy.
func (c *testCluster) newInstallation(t *testing.T, prefix string) *installation {
	t.Helper()
	watched := prefix + "foos"
	c.kubectl(t, "create", "namespace", watched)
	root := t.TempDir()
	for _, folder := range []string{"deploy", "crd"} {
		footest.Must(t, os.CopyFS(filepath.Join(root, folder), os.DirFS(filepath.Join(moduleRoot, "artifacts", folder))))
	}
	folder := filepath.Join(root, "deploy", "namespaced")
	watches, err := os.ReadFile(filepath.Join(folder, "watched.yaml"))
	footest.Must(t, err)
	another := strings.Replace(string(watches), "namespace: default", "namespace: "+watched, 1)
	writeFile(t, folder, "watched.yaml", another)
	i := &installation{inNamespaceOf(t, c, watched), prefix, folder}
	i.apply("")
	return i
}

// apply applies the overlay with more settings.
func (i *installation) apply(more string) {
	i.t.Helper()
	i.cluster.applyOverlay(i.t, writeOverlay(i.t, i.folder, "namePrefix: "+i.prefix+"\n"+withAnImage+more))
}

func (i *installation) start() *replica {
	i.t.Helper()
	return i.startInstalled(i.prefix + shipped)
}

// TestTwoInstallationsInOneNamespace stops one of two, drains a node of both, and upgrades one
// to another image. The other one works all the time, no write is refused, and the
// drain ends.
func TestTwoInstallationsInOneNamespace(t *testing.T) {
	t.Parallel()
	c := newOwnCluster(t, "-nodes=2")
	a, b := c.newInstallation(t, "a-"), c.newInstallation(t, "b-")
	c.awaitInstalled(t, "a-"+shipped)
	c.awaitInstalled(t, "b-"+shipped)
	nodes, err := c.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	footest.Must(t, err)
	node := nodes.Items[0].Name
	c.kubectl(t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", timeout)
	onNode := "--field-selector=spec.nodeName=" + node
	if left := c.kubectl(t, "get", "pods", inShippedNamespace, onNode, "-o=name", "--ignore-not-found"); left != "" {
		t.Errorf("the drain has left %s", left)
	}
	c.kubectl(t, "uncordon", node)

	ofA := a.start()
	b.start()
	a.readyFoo("first", "first", 1)
	b.readyFoo("first", "first", 1)
	a.stop(ofA)
	b.readyFoo("while-the-other-is-stopped", "while-the-other-is-stopped", 1)

	const mirror = "registry.example.com/mirror/nginx:1.29"
	ofA = a.start()
	a.apply(setsImage(mirror) + allowsEarlier("nginx:latest"))
	a.readyFoo("during-the-upgrade", "during-the-upgrade", 1)
	a.stop(ofA)
	a.start()
	a.awaitImage("first", mirror)
	a.await("it is ready", func(ctx context.Context) error {
		foo, err := a.foos().Get(ctx, "first", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return a.checkReady(foo, metav1.ConditionTrue, samplev1alpha1.ReasonAvailable)
	})
	for _, i := range []*installation{a, b} {
		warnings := "--field-selector=involvedObject.kind=Foo,type=Warning"
		if refusals := i.kubectl("get", "events", warnings, "--ignore-not-found"); refusals != "" {
			t.Errorf("writes were refused:\n%s", refusals)
		}
	}
}
