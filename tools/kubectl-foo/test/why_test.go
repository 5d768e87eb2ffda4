// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// broken is the status that the kubelet sets for a Pod whose image can't be pulled. devcluster's
// nodes pull no images.
const broken = `{"status":{"containerStatuses":[{"name":"nginx","image":"nginx:latest","imageID":"","ready":false,"restartCount":0,
	"state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image"}}}]}}`

// paused pauses a Deployment with changes to roll out.
const paused = `{"spec":{"paused":true,"template":{"metadata":{"annotations":{"of":"others"}}}}}`

// troubles are states of the cluster, with parts of the output of why.
var troubles = map[string]struct {
	// cause brings the Foo "a" into the state, while a controller is running.
	cause func(ns namespace)
	want  []string
}{
	"none": {namespace.withReadyFoo, []string{
		"ready: Deployment \"web\" has 2 of 2 Pods available", "which renewed its Lease", "Deployment web  2 of 2 available", "    ReplicaSet web-", "      Pod web-",
		"The next sync writes nothing.", "Normal   Foo a: Available",
	}},
	"name-taken": {func(ns namespace) {
		ns.kubectl("create", "deployment", "web", "--image=other")
		ns.withFoo()
	}, []string{
		"not ready, DeploymentConflict: Deployment \"web\" exists and has no controller: choose another spec.deploymentName, delete the Deployment, or hand it over with",
		"  none", "! leave Deployment web",
	}},
	"quota": {func(ns namespace) {
		ns.kubectl("create", "quota", "q", "--hard=pods=1")
		ns.withFoo()
	}, []string{"not ready, DeploymentFailed", "! FailedCreate: ", "exceeded quota: q", "-> lower spec.replicas, or request a larger quota: kubectl describe resourcequota -n"}},
	"paused": {func(ns namespace) {
		ns.withReadyFoo()
		ns.patchDeployment(paused)
	}, []string{"is paused with changes to roll out", "! it is paused", "-> to resume it: kubectl rollout resume -n"}},
	"unschedulable": {func(ns namespace) {
		ns.withReadyFoo()
		ns.patchDeployment(`{"spec":{"template":{"spec":{"nodeSelector":{"no":"such"}}}}}`)
	}, []string{"! Unschedulable: ", "-> check what the nodes have available: kubectl describe nodes", "FailedScheduling"}},
	"image": {func(ns namespace) {
		ns.withReadyFoo()
		for pod := range strings.FieldsSeq(ns.kubectl("get", "pods", "-o", "name")) {
			ns.kubectl("patch", pod, "--subresource=status", "-p", broken)
		}
	}, []string{"! container nginx (image nginx:latest): ImagePullBackOff: Back-off pulling image", "-> check that the image exists"}},
	"webhook-down": {func(ns namespace) {
		ns.breakWebhook()
		ns.withFoo()
	}, []string{"not ready", "failed calling webhook \"down.example.com\"", "-> the webhook is down or slow", "+ create Deployment web"}},
	"stuck": {func(ns namespace) {
		ns.withReadyFoo()
		ns.patchFoo(`{"metadata":{"finalizers":["example.com/stuck"]}}`)
		ns.kubectl("delete", "foo", "a", "--wait=false")
	}, []string{"not ready, Terminating", "! it has been terminating for ", "it remains until these finalizers are removed: example.com/stuck", "-> find out which controllers own the finalizers"}},
}

func TestWhy(t *testing.T) {
	controller := startController(t)
	for name, trouble := range troubles {
		t.Run(name, func(t *testing.T) {
			ns := newNamespace(t, "why-"+name)
			trouble.cause(ns)
			ns.awaitWhy(trouble.want...)
		})
	}
	t.Run("the controller was killed", func(t *testing.T) {
		ns := newNamespace(t, "why-killed")
		ns.withReadyFoo()
		controller.Kill() // so that it does not release the Lease
		ns.awaitWhy("Controller: not running: its Lease sample-controller/sample-controller was last renewed",
			"-> nothing changes until a controller runs; check its Pods: kubectl get pods -n sample-controller")
	})
	t.Run("a Foo that no controller has seen", func(t *testing.T) {
		ns := newNamespace(t, "why-unseen")
		ns.withFoo()
		ns.awaitWhy("no controller has synced it", "+ create Deployment web")
	})
}

// webhook is a webhook for the Deployments of a namespace that no server answers.
const webhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: down}
webhooks:
- name: down.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: "https://127.0.0.1:1/"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
  rules:
  - {operations: [CREATE, UPDATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]}
`

// breakWebhook registers the webhook, and waits until it is called.
func (ns namespace) breakWebhook() {
	ns.Helper()
	ns.kubectl("create", "-f", ns.file(strings.ReplaceAll(webhook, "NAMESPACE", ns.name)))
	ns.Cleanup(func() {
		_, _ = testcluster.Kubectl(context.Background(), devcluster, kubeconfig, "delete", "validatingwebhookconfiguration", "down")
	})
	footest.Must(ns.T, testcluster.Await(ns.Context(), limit, "the webhook is called", func(ctx context.Context) error {
		_, err := testcluster.Kubectl(ctx, devcluster, kubeconfig, "create", "deployment", "probe", "--image=other", "--dry-run=server", "-n", ns.name)
		if err == nil {
			return errors.New("a Deployment can be created")
		}
		return nil
	}))
}
