// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trouble is a state of the cluster, and parts of what why says of it.
type trouble struct {
	// cause makes a Foo "a" have it, with a controller that runs.
	cause func(t *testing.T, ns namespace)
	want  []string
}

var troubles = map[string]trouble{
	"none": {func(t *testing.T, ns namespace) {
		withFoo(t, ns)
		ns.awaitReady(t, "a")
	}, []string{
		"ready: Deployment \"web\" has 2 of 2 Pods available", "which renewed its Lease", "Deployment web  2 of 2 available", "    ReplicaSet web-", "      Pod web-",
		"The next sync writes nothing.", "spec.replicas: sample-controller (Update)", "Normal   Foo a: Available",
	}},
	"name-taken": {func(t *testing.T, ns namespace) {
		ns.createDeployment(t, "web", nil)
		withFoo(t, ns)
	}, []string{"not ready, DeploymentConflict: Deployment \"web\" exists and has no controller: choose another spec.deploymentName, delete the Deployment, or hand it over with", "  nothing", "! leave Deployment web"}},
	"quota": {func(t *testing.T, ns namespace) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}}
		_, err := env.kube.CoreV1().ResourceQuotas(string(ns)).Create(t.Context(), quota, metav1.CreateOptions{})
		must(t, err)
		withFoo(t, ns)
	}, []string{"not ready, DeploymentFailed", "! FailedCreate: ", "exceeded quota: q", "-> lower spec.replicas, or ask for a larger quota: kubectl describe resourcequota -n"}},
	"paused": {func(t *testing.T, ns namespace) {
		withFoo(t, ns)
		ns.awaitReady(t, "a")
		ns.patchDeployment(t, "web", `{"spec":{"paused":true,"template":{"metadata":{"annotations":{"of":"others"}}}}}`)
	}, []string{"is paused and has something to roll out", "! it is paused", "-> to go on: kubectl rollout resume -n"}},
	"unschedulable": {func(t *testing.T, ns namespace) {
		withFoo(t, ns)
		ns.awaitReady(t, "a")
		ns.patchDeployment(t, "web", `{"spec":{"template":{"spec":{"nodeSelector":{"no":"such"}}}}}`)
	}, []string{"! Unschedulable: ", "-> see what the nodes have left: kubectl describe nodes", "FailedScheduling"}},
	"image": {func(t *testing.T, ns namespace) {
		withFoo(t, ns)
		ns.awaitReady(t, "a")
		ns.failToPull(t)
	}, []string{"! container nginx (image nginx:latest): ImagePullBackOff: Back-off pulling image", "-> see whether the image exists"}},
	"webhook-down": {func(t *testing.T, ns namespace) {
		breakWebhook(t, ns)
		withFoo(t, ns)
	}, []string{"not ready", "failed calling webhook \"down.example.com\"", "-> the webhook is down or slow", "+ create Deployment web"}},
	"stuck": {func(t *testing.T, ns namespace) {
		withFoo(t, ns)
		ns.awaitReady(t, "a")
		ns.patchFoo(t, "a", `{"metadata":{"finalizers":["example.com/stuck"]}}`)
		must(t, env.foo.SamplecontrollerV1alpha1().Foos(string(ns)).Delete(t.Context(), "a", metav1.DeleteOptions{}))
	}, []string{"not ready, Terminating", "! it has been in deletion for ", "stays until somebody removes the finalizers example.com/stuck", "-> find out whose they are"}},
}

func TestWhy(t *testing.T) {
	controller := startController(t)
	for name, trouble := range troubles {
		t.Run(name, func(t *testing.T) {
			ns := newNamespace(t, "why-"+name)
			trouble.cause(t, ns)
			awaitText(t, func() result { return foo(t, "why", "a", "-n", string(ns)) }, trouble.want...)
		})
	}
	t.Run("the controller was killed", func(t *testing.T) {
		ns := newNamespace(t, "why-killed")
		withFoo(t, ns)
		ns.awaitReady(t, "a")
		controller.Kill() // so that it does not give the Lease back
		awaitText(t, func() result { return foo(t, "why", "a", "-n", string(ns)) },
			"Controller: not running: its Lease sample-controller/sample-controller was last renewed", "-> nothing changes until one runs; see: kubectl get pods -n sample-controller")
	})
	t.Run("a Foo that no controller has seen", func(t *testing.T) {
		ns := newNamespace(t, "why-unseen")
		withFoo(t, ns)
		awaitText(t, func() result { return foo(t, "why", "a", "-n", string(ns)) }, "no controller has synced it", "+ create Deployment web")
	})
}

// failToPull makes the Pods of a namespace as the kubelet makes them if an image can't be
// pulled. The nodes of devcluster pull none.
func (ns namespace) failToPull(t *testing.T) {
	t.Helper()
	pods, err := env.kube.CoreV1().Pods(string(ns)).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range pods.Items {
		pod := &pods.Items[i]
		await(t, "the Pod's status is written", func(ctx context.Context) error {
			pod, err := env.kube.CoreV1().Pods(string(ns)).Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for i := range pod.Status.ContainerStatuses {
				status := &pod.Status.ContainerStatuses[i]
				status.Ready, status.Started = false, new(false)
				status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image \"nginx:latest\""}}
			}
			_, err = env.kube.CoreV1().Pods(string(ns)).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			return err
		})
	}
}

// breakWebhook registers a webhook for the Deployments of a namespace that nobody serves.
func breakWebhook(t *testing.T, ns namespace) {
	t.Helper()
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "down"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "down.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: string(ns)}},
			FailurePolicy:     new(admissionregistrationv1.Fail),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		}},
	}
	client := env.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := client.Create(t.Context(), webhook, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { _ = client.Delete(context.Background(), "down", metav1.DeleteOptions{}) })
	await(t, "the webhook is called", func(ctx context.Context) error {
		return notRefused(ctx, ns)
	})
}

// notRefused returns an error unless the API server refuses a Deployment.
func notRefused(ctx context.Context, ns namespace) error {
	probe := deploymentOf("probe")
	_, err := env.kube.AppsV1().Deployments(string(ns)).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return errors.New("a Deployment can be created")
	}
	return nil
}
