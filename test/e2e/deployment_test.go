// SPDX-License-Identifier: Apache-2.0

// Deployments: how the tests of this kind create and read them, what Kubernetes does with
// them, and two installations that share them.

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// createDeployment creates a Deployment that no Foo controls.
func (ns *namespace) createDeployment(t *testing.T, name string, replicas int32) *appsv1.Deployment {
	t.Helper()
	created, err := ns.deployments().Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelsOf(name)},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: selectorOf(name),
			Template: templateOf(name),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("Creating Deployment %s: %v", name, err)
	}
	return created
}

func (ns *namespace) deployments() typedappsv1.DeploymentInterface {
	return ns.in.kube.AppsV1().Deployments(ns.name)
}

func asksFor(deployment *appsv1.Deployment, want int32) error {
	if got := *deployment.Spec.Replicas; got != want {
		return fmt.Errorf("spec.replicas is %d, want %d", got, want)
	}
	return nil
}

// foosDeployment returns the Deployment that the controller creates for a Foo called foo.
func foosDeployment() *appsv1.Deployment { return footest.UnstoredDeployment("foo") }

func (ns *namespace) getDeployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	return get(t, ns.deployments(), name)
}

// settledDeployment waits until the Deployment controller has completed a rollout, and
// returns the Deployment.
func (ns *namespace) settledDeployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	ns.awaitSettledOne(t, name)
	return ns.getDeployment(t, name)
}

// nginxOf returns the container that a Foo owns.
func nginxOf(d *appsv1.Deployment) *corev1.Container {
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == "nginx" {
			return c
		}
	}
	return &corev1.Container{}
}

// TestAnOverlayNamesTheMirrorInOnePlace checks that one line of an overlay sets the image
// for both the program and the policy, so that the policy accepts this image and no
// other. Existing Deployments follow. The writes of the old leader are refused until a
// new leader has the Lease, unless the overlay also allows the earlier image.
func TestAnOverlayNamesTheMirrorInOnePlace(t *testing.T) {
	t.Parallel()
	s := newSite(newBareCluster(t))
	const mirror = "registry.example.com/mirror/nginx:1.29"
	const another = "images: [{name: sample-controller, newTag: v1}]\n"
	ns := s.inDefault()

	s.applyOverlay(t, writeOverlay(t, deployFolder, another)).runsOnly(t, "nginx:latest", mirror)
	stopOld := s.startInstalled(t, shippedName)
	ns.createFoo(t, newFoo("old"))
	ns.awaitImage(t, "old", "nginx:latest")

	s.applyOverlay(t, writeOverlay(t, deployFolder, setsImage(mirror)+another)).runsOnly(t, mirror, "nginx:latest")
	ns.createFoo(t, newFoo("new"))
	ns.awaitMessage(t, "new", samplev1alpha1.ReasonDeploymentFailed, "The API server refused: ", "only with the image "+mirror)
	stopOld()

	defer s.startInstalled(t, shippedName)()
	ns.awaitImage(t, "new", mirror)
	ns.awaitImage(t, "old", mirror)

	const newest = "registry.example.com/mirror/nginx:1.30"
	s.applyOverlay(t, writeOverlay(t, deployFolder, setsImage(newest)+allowsEarlier(mirror)+another)).runsOnly(t, newest, "nginx:latest")
	ns.createFoo(t, newFoo("during"))
	ns.awaitImage(t, "during", mirror)
}

// runsOnly waits until the policy accepts a Foo's Deployment with an image and refuses
// one with another image.
func (th *thief) runsOnly(t *testing.T, image, other string) {
	t.Helper()
	th.await(t, "the image is accepted", th.creation(t, footest.WithImage(image)), testcluster.Succeeded)
	th.await(t, "another image is refused by the policy", th.creation(t, footest.WithImage(other)), testcluster.IsDeniedByPolicy)
}

// setsImage is what an overlay says to run an image, and allowsEarlier to allow the one of
// before, too.
func setsImage(image string) string {
	return fmt.Sprintf("commonAnnotations: {%s: '%s'}\n", imageAnnotation, image)
}

func allowsEarlier(image string) string {
	return fmt.Sprintf("patches: [{target: {kind: ServiceAccount, name: %s}, patch: '{apiVersion: v1, kind: ServiceAccount, metadata: {name: any, annotations: {samplecontroller.k8s.io/earlier-image: %q}}}'}]\n", shippedName, image)
}

// startInstalled starts the program with the arguments and the account of an installed
// Deployment, which have one name.
func (s *site) startInstalled(t *testing.T, name string) (stop func()) {
	t.Helper()
	deployment, err := s.kube.AppsV1().Deployments(shippedNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "controller.kubeconfig")
	if err := testcluster.WriteTokenKubeconfig(t.Context(), s.kube, s.kubeconfig, kubeconfig, shippedNamespace, name); err != nil {
		t.Fatal(err)
	}
	p := startController(t, append([]string{"-kubeconfig=" + kubeconfig}, argsOnThisMachine(deployment)...)...)
	return func() { p.stop(t) }
}

func (ns *namespace) awaitImage(t *testing.T, name, image string) {
	t.Helper()
	awaitOne(t, "the image is "+image, ns.deployments(), name, func(deployment *appsv1.Deployment) error {
		if nginxOf(deployment).Image != image {
			return errNone
		}
		return nil
	})
}

// TestTheClusterRunsDeployments shows that the cluster is complete, if it is a development
// cluster: a Deployment makes a ReplicaSet, which makes Pods, which run on nodes.
func TestTheClusterRunsDeployments(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	deployment := ns.createDeployment(t, "chain", 2)
	pods := ns.awaitReadyPods(t, "chain", 2)
	replicaSets, err := ns.replicaSets().List(t.Context(), ofWorkload("chain"))
	if err != nil || len(replicaSets.Items) != 1 {
		t.Fatalf("There are %d ReplicaSets (%v), want 1", len(replicaSets.Items), err)
	}
	expectController(t, &replicaSets.Items[0], deployment)
	for i := range pods {
		expectController(t, &pods[i], &replicaSets.Items[0])
	}
	awaitOne(t, "the Deployment reports its Pods", ns.deployments(), "chain", func(d *appsv1.Deployment) error {
		if d.Status.AvailableReplicas != 2 || d.Status.UpdatedReplicas != 2 {
			return errors.New("not all are available")
		}
		return nil
	})
}

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
