// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"example.com/sample-controller/test/testcluster"
)

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
