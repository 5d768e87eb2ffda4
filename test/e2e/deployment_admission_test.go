// SPDX-License-Identifier: Apache-2.0

// Admission that changes a Deployment: the Foo reports it, and the controller does not
// fight it.

package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	storedOtherwise = "The API server stored Deployment "
	mirroredImage   = "mirror.example.com/nginx:latest"
)

// fewDeploymentWrites is the number of writes of a Deployment that one change of a Foo
// may take, including conflicts with the Deployment controller.
const fewDeploymentWrites = 6

func isCapped(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 }

func TestACapOnReplicasIsReportedAndNotFought(t *testing.T) {
	t.Parallel()
	needsAdmission(t)
	ns := newNamespace(t)
	p, sent := ns.startRecorded(t, nil, "-resync=1s", "-v=4")
	ns.createReadyFoo(t, newFoo("scaled", withReplicas(1)))
	withdraw := ns.mutate(t, "object.spec.replicas > 2", "/spec/replicas", "2", changed(t, isCapped))
	before := sent.writes("deployments")
	ns.kubectl(t, "scale", "foo/scaled", "--replicas=5")
	ns.createFoo(t, newFoo("new", withReplicas(3)))
	ns.awaitMessage(t, "scaled", samplev1alpha1.ReasonDeploymentFailed, storedOtherwise+`"scaled" otherwise than asked: `, "spec.replicas is 2, not 5")
	ns.awaitMessage(t, "new", samplev1alpha1.ReasonDeploymentFailed, storedOtherwise+`"new" otherwise than asked: `, "spec.replicas is 2, not 3")
	ns.expectFewWrites(t, p, sent, before, "scaled", "new")

	// A Foo that asks for the allowed number becomes ready.
	ns.kubectl(t, "scale", "foo/new", "--replicas=2")
	ns.awaitReplicas(t, "new", 2)
	withdraw()
	ns.kubectl(t, "scale", "foo/scaled", "--replicas=4")
	ns.awaitReplicas(t, "scaled", 4)
}

// expectFewWrites checks that during some resyncs the controller has made few writes of
// the Foos' Deployments, counted from before, and one event for each Foo.
func (ns *namespace) expectFewWrites(t *testing.T, p *process, sent *requests, before int, foos ...string) {
	t.Helper()
	for _, foo := range foos {
		ns.settledDeployment(t, foo)
		awaitEvent(t, ns, foo, "Warning", samplev1alpha1.ReasonDeploymentFailed)
	}
	p.awaitResyncs(t, 2*fewDeploymentWrites)
	if got := sent.writes("deployments") - before; got > fewDeploymentWrites*len(foos) {
		t.Errorf("%d writes of Deployments for the Foos %v, want at most %d for each", got, foos, fewDeploymentWrites)
	}
	for _, foo := range foos {
		if got := ns.eventCount(t, foo, samplev1alpha1.ReasonDeploymentFailed); got != 1 {
			t.Errorf("%d events about Foo %s, want one", got, foo)
		}
	}
}

// TestAMutatedImageIsReportedAndNotFought runs the controller as an administrator,
// because for the shipped account the shipped policy would refuse the changed image.
func TestAMutatedImageIsReportedAndNotFought(t *testing.T) {
	t.Parallel()
	needsAdmission(t)
	ns := newNamespace(t)
	ns.in = ns.in.withoutAccount()
	p, sent := ns.startRecorded(t, nil, "-resync=1s", "-v=4")
	withdraw := ns.mirrorImages(t)
	ns.createFoo(t, newFoo("new", withReplicas(1)))
	says := `spec.template.spec.containers[nginx].image is "` + mirroredImage + `", not "nginx:latest"`
	ns.awaitMessage(t, "new", samplev1alpha1.ReasonDeploymentFailed, storedOtherwise+`"new" otherwise than asked: `, says)
	ns.expectFewWrites(t, p, sent, 0, "new")

	withdraw()
	ns.kubectl(t, "scale", "foo/new", "--replicas=3")
	ns.awaitReplicas(t, "new", 3)
}

// TestAMutatedImageIsRefusedByTheShippedPolicy uses the shipped account: the policy
// judges the image after a webhook changed it, as if the controller had set it.
func TestAMutatedImageIsRefusedByTheShippedPolicy(t *testing.T) {
	t.Parallel()
	needsAdmission(t)
	ns := newNamespace(t)
	p, sent := ns.startRecorded(t, nil, "-resync=1s", "-v=4")
	ns.createReadyFoo(t, newFoo("scaled", withReplicas(1)))
	ns.mirrorImages(t)
	before := sent.writes("deployments")
	ns.kubectl(t, "scale", "foo/scaled", "--replicas=3")
	ns.awaitMessage(t, "scaled", samplev1alpha1.ReasonDeploymentFailed, "The API server refused: ",
		"only with the image nginx:latest in the container nginx")
	ns.expectFewWrites(t, p, sent, before, "scaled")
}

// mirrorImages adds a webhook that replaces the image by that of a mirror.
func (ns *namespace) mirrorImages(t *testing.T) (withdraw func()) {
	t.Helper()
	return ns.mutate(t, "true", "/spec/template/spec/containers/0/image", `"`+mirroredImage+`"`,
		changed(t, func(d *appsv1.Deployment) bool { return nginxOf(d).Image == mirroredImage }))
}

// withoutAccount returns the cluster with an administrator as the controller's account.
func (c *testCluster) withoutAccount() *testCluster {
	changed := *c
	changed.account = &account{namespace: c.account.namespace, kubeconfig: c.kubeconfig, config: c.config}
	return &changed
}

// changed makes a check of a Deployment one of a child.
func changed(t *testing.T, check func(*appsv1.Deployment) bool) func(*child) bool {
	return func(found *child) bool {
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, deployment); err != nil {
			t.Error(err)
		}
		return check(deployment)
	}
}
