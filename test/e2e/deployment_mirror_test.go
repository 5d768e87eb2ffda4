// SPDX-License-Identifier: Apache-2.0

// An overlay that sets another image for Foos' Pods.

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

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
