// SPDX-License-Identifier: Apache-2.0

// Deployments: the image that an overlay sets, and two installations that share a
// namespace.

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

func (ns *namespace) deployments() typedappsv1.DeploymentInterface {
	return ns.in.kube.AppsV1().Deployments(ns.name)
}

// TestAnOverlayNamesTheMirrorInOnePlace checks that one line of an overlay sets the image
// for both the program and the policy, so that the policy accepts this image and no
// other. Existing Deployments follow. The writes of the old leader are refused until a
// new leader has the Lease, unless the overlay also allows the earlier image.
func TestAnOverlayNamesTheMirrorInOnePlace(t *testing.T) {
	t.Parallel()
	c := newBareCluster(t)
	const mirror = "registry.example.com/mirror/nginx:1.29"
	ns := c.inDefault()
	k := ns.primary()

	install := func(text string) *account { return c.applyOverlay(t, writeOverlay(t, deployFolder, text+withAnImage)) }

	install("").runsOnly(t, "nginx:latest", mirror)
	old := c.startInstalled(t, shippedName)
	k.createOwner(t, newFoo("old", 1))
	ns.awaitImage(t, "old", "nginx:latest")

	install(setsImage(mirror)).runsOnly(t, mirror, "nginx:latest")
	k.createOwner(t, newFoo("new", 1))
	ns.awaitNotReady(t, "new", samplev1alpha1.ReasonDeploymentFailed,
		"The API server refused: ", "only with the image "+mirror)
	old.stop(t)

	c.startInstalled(t, shippedName)
	ns.awaitImage(t, "new", mirror)
	ns.awaitImage(t, "old", mirror)

	const newest = "registry.example.com/mirror/nginx:1.30"
	install(setsImage(newest)+allowsEarlier(mirror)).runsOnly(t, newest, "nginx:latest")
	k.createOwner(t, newFoo("during", 1))
	ns.awaitImage(t, "during", mirror)
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
`, shippedName, earlierAnnotation, image)
}

// earlierAnnotation names another image that the policy allows.
const earlierAnnotation = "samplecontroller.k8s.io/earlier-image"

var errOtherImage = errors.New("it has another image")

func (ns *namespace) awaitImage(t *testing.T, name, image string) {
	t.Helper()
	await(t, "the image is "+image, ns.deployments(), name, func(deployment *appsv1.Deployment) error {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			if container.Name == "nginx" && container.Image == image {
				return nil
			}
		}
		return errOtherImage
	})
}

// installation is one of several in the namespace of the shipped one.
type installation struct {
	*testCluster

	// prefix begins its names, and folder is its overlay.
	prefix, folder string
	foos           *namespace
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
	another := strings.Replace(string(watches), "namespace: "+watchedNamespace, "namespace: "+watched, 1)
	writeFile(t, folder, "watched.yaml", another)
	i := &installation{testCluster: c, prefix: prefix, folder: folder, foos: &namespace{watched, c}}
	i.apply(t, "")
	return i
}

// apply applies the overlay with more settings.
func (i *installation) apply(t *testing.T, more string) {
	t.Helper()
	i.applyOverlay(t, writeOverlay(t, i.folder, "namePrefix: "+i.prefix+"\n"+withAnImage+more))
}

func (i *installation) start(t *testing.T) *process {
	t.Helper()
	return i.startInstalled(t, i.prefix+shippedName)
}

// TestTwoInstallationsInOneNamespace stops one of two, drains a node of both, and upgrades one
// to another image. The other one works all the time, no write is refused, and the
// drain ends.
func TestTwoInstallationsInOneNamespace(t *testing.T) {
	t.Parallel()
	c := newOwnCluster(t, "-nodes=2")
	a, b := c.newInstallation(t, "a-"), c.newInstallation(t, "b-")
	c.awaitInstalled(t, "a-"+shippedName)
	c.awaitInstalled(t, "b-"+shippedName)
	nodes, err := c.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	footest.Must(t, err)
	node := nodes.Items[0].Name
	c.kubectl(t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", timeout)
	onNode := "--field-selector=spec.nodeName=" + node
	if left := c.kubectl(t, "get", "pods", inShippedNamespace, onNode, "-o=name", "--ignore-not-found"); left != "" {
		t.Errorf("the drain has left %s", left)
	}
	c.kubectl(t, "uncordon", node)

	ofA := a.start(t)
	b.start(t)
	a.foos.createReadyFoo(t, newFoo("first", 1))
	b.foos.createReadyFoo(t, newFoo("first", 1))
	ofA.stop(t)
	b.foos.createReadyFoo(t, newFoo("while-the-other-is-stopped", 1))

	const mirror = "registry.example.com/mirror/nginx:1.29"
	ofA = a.start(t)
	a.apply(t, setsImage(mirror)+allowsEarlier("nginx:latest"))
	a.foos.createReadyFoo(t, newFoo("during-the-upgrade", 1))
	ofA.stop(t)
	a.start(t)
	a.foos.awaitImage(t, "first", mirror)
	for _, i := range []*installation{a, b} {
		i.foos.primary().awaitReady(t, "first")
		warnings := "--field-selector=involvedObject.kind=Foo,type=Warning"
		if refusals := i.foos.kubectl(t, "get", "events", warnings, "--ignore-not-found"); refusals != "" {
			t.Errorf("writes were refused:\n%s", refusals)
		}
	}
}
