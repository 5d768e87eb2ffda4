/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	storedOtherwise = "The API server stored Deployment "
	mirroredImage   = "mirror.example.com/nginx:latest"
)

// fewDeploymentWrites is what one change of a Foo may take, races lost to the
// Deployment's own controller included.
const fewDeploymentWrites = 4

func isCapped(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 }

func TestACapOnReplicasIsSaidAndNotFought(t *testing.T) {
	t.Parallel()
	needsAdmission(t)
	ns := newNamespace(t)
	p, sent := ns.startRecorded(t, nil, "-resync=1s", "-v=4")
	ns.createReadyFoo(t, newFoo("scaled", withReplicas(1)))
	withdraw := ns.mutate(t, "object.spec.replicas > 2", "/spec/replicas", "2", isCapped)
	before := sent.writes("deployments")
	ns.kubectl(t, "scale", "foo/scaled", "--replicas=5")
	ns.createFoo(t, newFoo("new", withReplicas(3)))
	ns.awaitMessage(t, "scaled", samplev1alpha1.ReasonDeploymentFailed, storedOtherwise+`"scaled" otherwise than asked: `, "replicas is 2, not 5")
	ns.awaitMessage(t, "new", samplev1alpha1.ReasonDeploymentFailed, storedOtherwise+`"new" otherwise than asked: `, "replicas is 2, not 3")
	ns.isNotFought(t, p, sent, before, "scaled", "new")

	// As large as is allowed: that is what is asked for.
	ns.kubectl(t, "scale", "foo/new", "--replicas=2")
	ns.awaitReplicas(t, "new", 2)
	withdraw()
	ns.kubectl(t, "scale", "foo/scaled", "--replicas=4")
	ns.awaitReplicas(t, "scaled", 4)
}

// isNotFought looks on for some resyncs: Foos cost few writes of Deployments
// since there were a number of them, and one event each.
func (ns *namespace) isNotFought(t *testing.T, p *process, sent *requests, before int, foos ...string) {
	t.Helper()
	for _, foo := range foos {
		ns.awaitSettledOne(t, foo)
		awaitEvent(t, ns, foo, "Warning", samplev1alpha1.ReasonDeploymentFailed)
	}
	p.awaitResyncs(t, 2*fewDeploymentWrites)
	if got := sent.writes("deployments") - before; got > fewDeploymentWrites*len(foos) {
		t.Errorf("%d writes of Deployments for %v", got, foos)
	}
	for _, foo := range foos {
		if got := ns.eventCount(t, foo, samplev1alpha1.ReasonDeploymentFailed); got != 1 {
			t.Errorf("%d events about Foo %s, want one", got, foo)
		}
	}
}

// The shipped policy refuses other images than nginx to its account, whoever
// changes them: so this controller is one that it is not about.
func TestAnImageThatAPolicyChangesIsSaidAndNotFought(t *testing.T) {
	t.Parallel()
	needsAdmission(t)
	ns := newNamespace(t)
	ns.in = ns.in.withoutAccount()
	p, sent := ns.startRecorded(t, nil, "-resync=1s", "-v=4")
	withdraw := ns.mirrorImages(t)
	ns.createFoo(t, newFoo("new", withReplicas(1)))
	says := `the image of container nginx is "` + mirroredImage + `", not "nginx:latest"`
	ns.awaitMessage(t, "new", samplev1alpha1.ReasonDeploymentFailed, storedOtherwise+`"new" otherwise than asked: `, says)
	ns.isNotFought(t, p, sent, 0, "new")

	withdraw()
	ns.kubectl(t, "scale", "foo/new", "--replicas=3")
	ns.awaitReplicas(t, "new", 3)
}

// With the shipped account what a policy of somebody's makes of a Deployment is
// judged as the controller's doing.
func TestAnImageThatAPolicyChangesIsRefusedByTheShippedOne(t *testing.T) {
	t.Parallel()
	needsAdmission(t)
	ns := newNamespace(t)
	p, sent := ns.startRecorded(t, nil, "-resync=1s", "-v=4")
	ns.createReadyFoo(t, newFoo("scaled", withReplicas(1)))
	ns.mirrorImages(t)
	before := sent.writes("deployments")
	ns.kubectl(t, "scale", "foo/scaled", "--replicas=3")
	ns.awaitMessage(t, "scaled", samplev1alpha1.ReasonDeploymentFailed, "The API server refused: ", onlyNginx)
	ns.isNotFought(t, p, sent, before, "scaled")
}

// mirrorImages has a policy put a mirror's name before the image.
func (ns *namespace) mirrorImages(t *testing.T) (withdraw func()) {
	t.Helper()
	return ns.mutate(t, "true", "/spec/template/spec/containers/0/image", `"`+mirroredImage+`"`,
		func(d *appsv1.Deployment) bool { return nginxOf(d).Image == mirroredImage })
}

// withoutAccount is the cluster with its administrator in the controller's place.
func (c *testCluster) withoutAccount() *testCluster {
	changed := *c
	changed.account = &account{namespace: c.account.namespace, kubeconfig: c.kubeconfig, config: c.config}
	return &changed
}
