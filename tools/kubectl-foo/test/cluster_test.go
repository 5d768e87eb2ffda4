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
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/testcluster"
)

// controllerNamespace has the controller's Lease.
const controllerNamespace = "sample-controller"

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

// TestViewIsEnough runs the commands with an account that has nothing but the role view in
// its namespace, with the rules about Foos that artifacts/deploy adds to that role.
func TestViewIsEnough(t *testing.T) {
	startController(t)
	ns := newNamespace(t, "viewers")
	withFoo(t, ns)
	ns.awaitReady(t, "a")
	addRolesOfUsers(t)
	kubeconfig := ns.viewer(t)
	as := func(args ...string) result {
		return run(t, append(args, "--kubeconfig="+kubeconfig, "-n", string(ns))...)
	}

	awaitText(t, func() result { return as("plan") }, "Nothing to do: 1 Foo is as asked.")
	got := as("why", "a")
	for _, text := range []string{"ready: Deployment", "Pod web-", "Controller: unknown: the Lease", "the permission to get leases.coordination.k8s.io is missing"} {
		if got.code != 0 || !strings.Contains(got.out, text) {
			t.Errorf("why: exit code %d, without %q:\n%s%s", got.code, text, got.out, got.errOut)
		}
	}
	ns.patchFoo(t, "a", `{"spec":{"deploymentName":"b"}}`)
	got = as("plan", "-f", ns.file(t, "c"), "--server-dry-run")
	if got.code != 2 || !strings.Contains(got.errOut, "--server-dry-run needs the permission to create foos.samplecontroller.k8s.io, which this account lacks") {
		t.Errorf("--server-dry-run: exit code %d\n%s%s", got.code, got.out, got.errOut)
	}
	got = as("plan", "-A")
	if got.code != 2 || !strings.Contains(got.errOut, "the permission to list foos.samplecontroller.k8s.io is missing") {
		t.Errorf("plan -A: exit code %d\n%s%s", got.code, got.out, got.errOut)
	}
}

// file writes a manifest of a Foo.
func (ns namespace) file(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	text := fmt.Sprintf("apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Foo\nmetadata: {name: %s, namespace: %s}\nspec: {deploymentName: %s, replicas: 2}\n", name, ns, name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// addRolesOfUsers creates the roles that artifacts/deploy has for users.
func addRolesOfUsers(t *testing.T) {
	t.Helper()
	file, err := os.Open("../../../artifacts/deploy/permissions/users.yaml")
	must(t, err)
	defer file.Close()
	decoder := utilyaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		role := &rbacv1.ClusterRole{}
		if decoder.Decode(role) != nil {
			return
		}
		_, err := env.kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
		must(t, err)
	}
}

// viewer returns the path of a kubeconfig of a new account with the role view.
func (ns namespace) viewer(t *testing.T) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}}
	_, err := env.kube.CoreV1().ServiceAccounts(string(ns)).Create(t.Context(), account, metav1.CreateOptions{})
	must(t, err)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "viewer", Namespace: string(ns)}},
	}
	_, err = env.kube.RbacV1().RoleBindings(string(ns)).Create(t.Context(), binding, metav1.CreateOptions{})
	must(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, testcluster.WriteTokenKubeconfig(t.Context(), env.kube, env.Kubeconfig, path, string(ns), "viewer"))
	return path
}

// TestServerDryRun asks the API server about writes that it takes, and refuses.
func TestServerDryRun(t *testing.T) {
	ns := newNamespace(t, "dry-runs")
	before := len(writesInLog(t))
	got := foo(t, "plan", "-n", string(ns), "-f", ns.file(t, "a"), "--server-dry-run")
	if got.code != 1 || !strings.Contains(got.out, "+ create Deployment a") || strings.Contains(got.out, "refuse") {
		t.Errorf("exit code %d\n%s%s", got.code, got.out, got.errOut)
	}
	withFoo(t, ns)
	breakWebhook(t, ns)
	got = foo(t, "plan", "-n", string(ns), "--server-dry-run")
	for _, text := range []string{"the API server would refuse this: Internal error occurred: failed calling webhook \"down.example.com\"", "+1 ~0 -0, 1 status, 1 refused of 1 Foo"} {
		if got.code != 1 || !strings.Contains(got.out, text) {
			t.Errorf("exit code %d, without %q\n%s%s", got.code, text, got.out, got.errOut)
		}
	}
	if writes := writesInLog(t)[before:]; len(writes) != 1 { // that of the Foo
		t.Errorf("these were writes: %+v", linesOf(writes))
	}
}
