// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/artifacts/crd"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/testcluster"
)

// controllerNamespace has the controller's Lease.
const controllerNamespace = "sample-controller"

// createDefinition creates the CustomResourceDefinition of Foos.
func createDefinition(ctx context.Context, client apiextensionsclient.Interface) error {
	entries, err := crd.Files.ReadDir(".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := crd.Files.ReadFile(entry.Name())
		if err != nil {
			return err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, definition); err != nil {
			return err
		}
		if definition.Kind != "CustomResourceDefinition" {
			continue
		}
		if _, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, definition, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return testcluster.Await(ctx, limit, "Foos are served", func(ctx context.Context) error {
		_, err := env.foo.SamplecontrollerV1alpha1().Foos("").List(ctx, metav1.ListOptions{})
		return err
	})
}

// startController starts the controller with leader election, and returns what stops it.
func startController(t *testing.T) *testcluster.Process {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "controller.log"))
	must(t, err)
	command := exec.Command(env.controller, "-kubeconfig="+env.Kubeconfig, "-leader-elect", "-leader-elect-resource-namespace="+controllerNamespace)
	command.Stdout, command.Stderr = log, log
	process, err := testcluster.StartProcess(command)
	must(t, err)
	t.Cleanup(func() {
		process.Stop(limit)
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the controller's log:\n%s", text)
		}
	})
	return process
}

// namespace is one of a test.
type namespace string

// newNamespace creates a namespace and deletes it after the test.
func newNamespace(t *testing.T, name string) namespace {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := env.kube.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		_ = env.kube.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}) // the cluster goes, too
	})
	return namespace(name)
}

// create creates a Foo that asks for a Deployment.
func (ns namespace) create(t *testing.T, name, deployment string, replicas int32) {
	t.Helper()
	object := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: deployment, Replicas: new(replicas)},
	}
	_, err := env.foo.SamplecontrollerV1alpha1().Foos(string(ns)).Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
}

// createDeployment creates a Deployment of nobody.
func (ns namespace) createDeployment(t *testing.T, name string, change func(*appsv1.Deployment)) {
	t.Helper()
	object := deploymentOf(name)
	if change != nil {
		change(object)
	}
	_, err := env.kube.AppsV1().Deployments(string(ns)).Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
}

func deploymentOf(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "other"}}},
			},
		},
	}
}

// patchFoo and patchDeployment apply a JSON merge patch.
func (ns namespace) patchFoo(t *testing.T, name, patch string) {
	t.Helper()
	_, err := env.foo.SamplecontrollerV1alpha1().Foos(string(ns)).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

func (ns namespace) patchDeployment(t *testing.T, name, patch string) {
	t.Helper()
	_, err := env.kube.AppsV1().Deployments(string(ns)).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

// awaitReady waits until a Foo is ready.
func (ns namespace) awaitReady(t *testing.T, name string) {
	t.Helper()
	await(t, fmt.Sprintf("the Foo %s/%s is ready", ns, name), func(ctx context.Context) error {
		object, err := env.foo.SamplecontrollerV1alpha1().Foos(string(ns)).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(object.Status.Conditions, samplev1alpha1.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != object.Generation {
			return fmt.Errorf("the condition is %+v", ready)
		}
		return nil
	})
}

// awaitRest waits until the Deployments of a namespace are rolled out, so that nothing
// changes any more but by the controller of Foos.
func (ns namespace) awaitRest(t *testing.T) {
	t.Helper()
	await(t, fmt.Sprintf("the Deployments of %s are rolled out", ns), func(ctx context.Context) error {
		list, err := env.kube.AppsV1().Deployments(string(ns)).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			d := &list.Items[i]
			s, want := d.Status, ptr.Deref(d.Spec.Replicas, 1)
			if s.ObservedGeneration != d.Generation || s.Replicas != want || !d.Spec.Paused && (s.UpdatedReplicas != want || s.AvailableReplicas != want) {
				return fmt.Errorf("the Deployment %s is not: %+v", d.Name, s)
			}
		}
		return nil
	})
}

// awaitText waits until a command's output contains all texts.
func awaitText(t *testing.T, run func() result, texts ...string) {
	t.Helper()
	await(t, fmt.Sprintf("the output contains %q", texts), func(context.Context) error {
		got := run()
		for _, text := range texts {
			if !strings.Contains(got.out+got.errOut, text) {
				return fmt.Errorf("it lacks %q (exit code %d):\n%s%s", text, got.code, got.out, got.errOut)
			}
		}
		return nil
	})
}

// awaitGone waits until nothing has a name any more.
func awaitGone(t *testing.T, what string, get func(context.Context) error) {
	t.Helper()
	await(t, what+" is gone", func(ctx context.Context) error {
		err := get(ctx)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}
