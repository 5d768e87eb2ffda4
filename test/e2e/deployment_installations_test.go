// SPDX-License-Identifier: Apache-2.0

// Two installations in one namespace, each for the Foos of a namespace of its own.

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installation is one of several in the namespace of the shipped one.
type installation struct {
	*site

	// prefix begins its names, and folder is its overlay.
	prefix, folder string
	foos           *namespace
}

// newInstallation copies the manifests, as docs/operations.md says, and names a namespace to
// watch in the copy.
func (s *site) newInstallation(t *testing.T, prefix string) *installation {
	t.Helper()
	watched := prefix + "foos"
	s.kubectl(t, "create", "namespace", watched)
	root := t.TempDir()
	for _, folder := range []string{"deploy", "crd"} {
		if err := os.CopyFS(filepath.Join(root, folder), os.DirFS(filepath.Join(moduleRoot, "artifacts", folder))); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(root, "deploy", "namespaced"), "watched.yaml", fmt.Sprintf(
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: watched, annotations: {config.kubernetes.io/local-config: 'true'}}, data: {namespace: %s}}\n", watched))
	i := &installation{site: s, prefix: prefix, folder: filepath.Join(root, "deploy", "namespaced"), foos: &namespace{watched, s.testCluster}}
	i.apply(t, "")
	return i
}

// apply applies the overlay with more settings.
func (i *installation) apply(t *testing.T, more string) {
	t.Helper()
	i.applyOverlay(t, writeOverlay(t, i.folder, "namePrefix: "+i.prefix+"\nimages: [{name: sample-controller, newTag: v1}]\n"+more))
}

func (i *installation) start(t *testing.T) (stop func()) {
	t.Helper()
	return i.startInstalled(t, i.prefix+shippedName)
}

// TestTwoInstallationsInOneNamespace stops one of two, drains a node of both, and upgrades one
// to another image and back. The other one works all the time, no write is refused, and the
// drain ends.
func TestTwoInstallationsInOneNamespace(t *testing.T) {
	t.Parallel()
	s := newSite(newOwnCluster(t, "-nodes=2"))
	a, b := s.newInstallation(t, "a-"), s.newInstallation(t, "b-")

	patience := "--timeout=" + cluster.patience().String()
	for _, i := range []*installation{a, b} {
		s.kubectl(t, "wait", "-n="+shippedNamespace, "deployment/"+i.prefix+shippedName, "--for=jsonpath={.status.readyReplicas}=2", patience)
	}
	nodes, err := s.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node := nodes.Items[0].Name
	if _, stderr := s.try(t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", patience); stderr != "" {
		t.Logf("kubectl drain: %s", stderr)
	}
	if left := s.kubectl(t, "get", "pods", "-n="+shippedNamespace, "--field-selector=spec.nodeName="+node, "-o=name"); left != "" {
		t.Errorf("the drain has left %s", left)
	}
	s.kubectl(t, "uncordon", node)

	stopA := a.start(t)
	defer b.start(t)()
	for _, i := range []*installation{a, b} {
		i.foos.createReadyFoo(t, newFoo("first"))
	}
	stopA()
	b.foos.createReadyFoo(t, newFoo("while-the-other-is-stopped"))

	const mirror = "registry.example.com/mirror/nginx:1.29"
	stopA = a.start(t)
	a.apply(t, setsImage(mirror)+allowsEarlier("nginx:latest"))
	a.foos.createReadyFoo(t, newFoo("during-the-upgrade"))
	stopA()
	stopA = a.start(t)
	a.foos.awaitImage(t, "first", mirror)

	a.apply(t, setsImage("nginx:latest")+allowsEarlier(mirror))
	a.foos.createReadyFoo(t, newFoo("during-the-rollback"))
	stopA()
	defer a.start(t)()
	a.foos.awaitImage(t, "during-the-rollback", "nginx:latest")
	for _, i := range []*installation{a, b} {
		i.foos.awaitReady(t, "first")
		list, err := i.foos.foos().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for j := range list.Items {
			i.foos.neverRefused(t, list.Items[j].Name)
		}
	}
}

// neverRefused checks that no Event of a Foo says that the API server refused a write.
func (ns *namespace) neverRefused(t *testing.T, name string) {
	t.Helper()
	events, err := ns.events().List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name + ",type=Warning"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		t.Errorf("Foo %s was refused: %s", name, events.Items[i].Message)
	}
}
