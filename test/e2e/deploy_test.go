// SPDX-License-Identifier: Apache-2.0

// The shipped manifests, installed in their own cluster, checked, and uninstalled; and the
// NetworkPolicy.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// imageAnnotation sets the image of Foos' Pods. The policy reads it from the service
// account, the program from its own Pod.
const imageAnnotation = "samplecontroller.k8s.io/image"

const inShippedNamespace = "--namespace=" + shipped

// TestTheManifestsInstallTheControllerOnAnOldKubernetes tests the installation on the
// oldest release that devcluster emulates. "make skew" runs all tests on each release.
func TestTheManifestsInstallTheControllerOnAnOldKubernetes(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), testcluster.Devcluster(t), "version").Output()
	footest.Must(t, err)
	_, list, _ := strings.Cut(string(out), "\nEmulates ")
	versions := strings.Fields(list)
	if len(versions) < 2 {
		t.Fatalf("devcluster version names no release that it can emulate, except its own:\n%s", out)
	}
	c := newOwnCluster(t, "-nodes=2", "-emulated-version="+versions[0])
	if c.emulates != versions[0] {
		t.Errorf("The API server emulates %q, want %s", c.emulates, versions[0])
	}
	c.checkInstallation(t, deployFolder, true)
}

const shippedUser = "system:serviceaccount:" + shipped + ":" + shipped

// checkInstallation installs the controller, checks the installation, and uninstalls it.
// everywhere says whether the controller may list Foos of all namespaces.
func (c *testCluster) checkInstallation(t *testing.T, folder string, everywhere bool) {
	t.Helper()
	// The dry run needs the namespace, with its Pod Security profile. A server-side apply requires
	// each field to be valid as written.
	c.kubectl(t, "apply", "-f="+deployFolder+"/permissions/namespace.yaml")
	c.kubectl(t, "apply", "-k="+folder, "--dry-run=server", "--server-side", "--force-conflicts")
	installed := c.kubectl(t, "get", "deployments", inShippedNamespace, "-o=name", "--ignore-not-found")
	if installed != "" {
		t.Fatalf("After a dry run there is %s", installed)
	}
	c.kubectl(t, "apply", "--server-side", "-k="+folder)
	c.kubectl(t, "wait", "--for=condition=Established", "crd/"+crdName)
	c.checkPods(t)
	c.checkPolicy(t)
	c.checkUsers(t)
	if err := c.mayFoos(t, shippedUser, "list", "--namespace=kube-public"); (err == nil) != everywhere {
		t.Errorf("The controller may list Foos of another namespace: %v, want %v", err == nil, everywhere)
	}
	t.Run("the program", func(t *testing.T) { c.checkProgram(t, folder) })
	c.kubectl(t, "delete", "-k="+folder, timeout)
	left := c.kubectl(t, "get", clusterScoped+",crds,namespaces", "-o=name")
	if strings.Contains(left, "sample") {
		t.Errorf("Objects are left: %s", left)
	}
}

// checkPods checks that two Pods are admitted, that they are on two nodes, and that one
// may be evicted. The Pod Security profile is in force.
func (c *testCluster) checkPods(t *testing.T) {
	t.Helper()
	c.awaitInstalled(t, shipped)
	isEvictable := "--for=jsonpath={.status.disruptionsAllowed}=1"
	c.kubectl(t, "wait", inShippedNamespace, "pdb/"+shipped, isEvictable, timeout)
	pods, err := c.kube.CoreV1().Pods(shipped).List(t.Context(), metav1.ListOptions{})
	footest.Must(t, err)
	nodes := map[string]bool{}
	for i := range pods.Items {
		nodes[pods.Items[i].Spec.NodeName] = true
		if qos := pods.Items[i].Status.QOSClass; qos != corev1.PodQOSBurstable {
			t.Errorf("Pod %s is %s, want Burstable: with requests, without a limit of CPU", pods.Items[i].Name, qos)
		}
	}
	if len(nodes) != 2 {
		t.Errorf("The Pods are on %v, want one on each of two nodes", nodes)
	}
	out, err := c.runKubectl(t.Context(), "run", "plain", "--image=nginx", inShippedNamespace, "--dry-run=server")
	if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) {
		t.Errorf("For a Pod without a security context kubectl printed %q (%v), want a refusal", out, err)
	}
}

// awaitInstalled waits until the Pods of an installed controller are ready.
func (c *testCluster) awaitInstalled(t *testing.T, name string) {
	t.Helper()
	isReady := "--for=jsonpath={.status.readyReplicas}=2"
	c.kubectl(t, "wait", inShippedNamespace, "deployment/"+name, isReady, timeout)
}

// checkPolicy checks that the admission policies have no type errors, and that those of all
// kinds of children apply to the account, which may write Foos' children. test/artifacts/policy checks
// what they refuse.
func (c *testCluster) checkPolicy(t *testing.T) {
	t.Helper()
	policies := c.kubectl(t, "get", "validatingadmissionpolicies", "-o=name", "-l=app.kubernetes.io/name="+shipped)
	for policy := range strings.FieldsSeq(policies) {
		c.kubectl(t, "wait", policy, "--for=jsonpath={.status.observedGeneration}=1", timeout)
		if warnings := c.kubectl(t, "get", policy, "-o=jsonpath={.status.typeChecking.expressionWarnings}"); warnings != "" {
			t.Errorf("The server warns of the expressions of %s: %s", policy, warnings)
		}
	}
	installed, err := c.accountOf(t.Context(), shipped, shipped)
	footest.Must(t, err)
	footest.Must(t, installed.awaitPolicies(t.Context(), metav1.NamespaceDefault))
	footest.Must(t, installed.awaitFoosAsOwners(t.Context(), metav1.NamespaceDefault))
}

// mayFoos returns an error unless a user may do something with Foos.
func (c *testCluster) mayFoos(t *testing.T, user, verb string, more ...string) error {
	t.Helper()
	return c.allows(t.Context(), user, append([]string{verb, "foos." + samplev1alpha1.GroupName}, more...)...)
}

// checkUsers checks that the built-in roles include Foos. A controller of Kubernetes
// aggregates the shipped roles into them.
func (c *testCluster) checkUsers(t *testing.T) {
	t.Helper()
	for _, role := range []string{"view", "edit"} {
		c.kubectl(t, "create", "rolebinding", role, "--clusterrole="+role, "--user="+role)
	}
	footest.Must(t, testcluster.Await(t.Context(), patience, "users with the role view or edit may read or write Foos", func(context.Context) error {
		return errors.Join(c.mayFoos(t, "view", "get"), c.mayFoos(t, "edit", "get"), c.mayFoos(t, "edit", "create"))
	}))
	if c.mayFoos(t, "view", "create") == nil || c.mayFoos(t, "nobody", "get") == nil {
		t.Error("Users without these roles may read or write Foos, too")
	}
	const status = "--subresource=status"
	if c.mayFoos(t, "edit", "update", status) == nil || c.mayFoos(t, "edit", "patch", status) == nil {
		t.Error("Users with the role edit may write the status, which only the controller should write")
	}
	c.kubectl(t, "delete", "rolebinding", "view", "edit")
}

// startInstalled starts the program with the arguments and the account of an installed
// Deployment, which have one name, and more flags. Its ports are free ones.
func (tr *trial) startInstalled(name string, flags ...string) *replica {
	tr.t.Helper()
	var err error
	tr.account, err = tr.cluster.accountOf(tr.ctx, shipped, name)
	tr.must(err)
	deployment, err := tr.cluster.kube.AppsV1().Deployments(shipped).Get(tr.ctx, name, metav1.GetOptions{})
	tr.must(err)
	args := slices.Clone(deployment.Spec.Template.Spec.Containers[0].Args)
	for i := range args {
		if flag, _, found := strings.Cut(args[i], "-bind-address=:"); found {
			args[i] = flag + "-bind-address=" + anyPort
		}
		args[i] = strings.ReplaceAll(args[i], "$(FOO_IMAGE)", deployment.Spec.Template.Annotations[imageAnnotation])
	}
	tr.everywhere, tr.subject = true, &subject{path: run.ours.path}
	// As in a Pod, whose namespace the program knows.
	return tr.start(slices.Concat(args, []string{"-leader-elect-resource-namespace=" + shipped}, flags)...)
}

// TestTheInstallFileEqualsTheFolder checks that the file of make install-yaml is the
// rendered directory with the image set, which is the documents' example, with a digest after the tag.
func TestTheInstallFileEqualsTheFolder(t *testing.T) {
	t.Parallel()
	const (
		image  = "registry.example.com:5000/team/sample-controller"
		digest = "sha256:4b8ffe8c5cd8b2ed94e1d5bd1f2ec0dbf3a5cbe1b3f6dd4f7f4b2c7e2f0e2a11"
	)
	file := filepath.Join(t.TempDir(), "install.yaml")
	script, err := filepath.Abs(moduleRoot + "/hack/install-yaml.sh")
	footest.Must(t, err)
	if out, err := exec.CommandContext(t.Context(), script, image+":v1@"+digest, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	inFile, err := os.ReadFile(file)
	footest.Must(t, err)
	setsImage := fmt.Sprintf("images: [{name: sample-controller, newName: '%s', newTag: v1, digest: '%s'}]\n",
		image, digest)
	rendered := run.cluster.kubectl(t, "kustomize", writeOverlay(t, deployFolder, setsImage))
	footest.ExpectEqual(t, "the file", rendered, strings.TrimSpace(string(inFile)))
	if want := "image: " + image + ":v1@" + digest; !strings.Contains(rendered, want) {
		t.Errorf("There is no %s in\n%s", want, rendered)
	}
}

// policyPatch matches the patch in docs/operations.md.
var policyPatch = regexp.MustCompile("(?s)```yaml\n(patches:\n- target: {kind: NetworkPolicy.*?)```")

// TestTheNetworkPolicyAdmitsOnlyPrometheus reads the policy of the program's Pods, because the
// clusters of these tests have no network plugin.
func TestTheNetworkPolicyAdmitsOnlyPrometheus(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile(filepath.Join(moduleRoot, "docs", "operations.md"))
	if err != nil {
		t.Skipf("the documents are missing: %v", err)
	}
	patch := policyPatch.FindSubmatch(manual)
	if patch == nil {
		t.Fatal("docs/operations.md does not have the patch for another namespace")
	}
	for _, test := range []struct{ what, patch, prometheus string }{
		{"as it is shipped", "", "monitoring"},
		{"with the documented patch", string(patch[1]), "observability"},
	} {
		t.Run(test.what, func(t *testing.T) {
			var policy networkingv1.NetworkPolicy
			var program appsv1.Deployment
			for _, object := range objectsOf(t, writeOverlay(t, deployFolder, test.patch)) {
				if into := map[string]any{"NetworkPolicy": &policy, "Deployment": &program}[object.GetKind()]; into != nil {
					footest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true))
				}
			}
			footest.ExpectEqual(t, "the selector of Pods", *program.Spec.Selector, policy.Spec.PodSelector)
			footest.ExpectEqual(t, "what the policy restricts", []networkingv1.PolicyType{"Ingress", "Egress"}, policy.Spec.PolicyTypes)
			// The API server sets this label of each namespace.
			monitoring := metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: "In", Values: []string{test.prometheus}}
			selector := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{monitoring}}
			footest.ExpectEqual(t, "who may connect", []networkingv1.NetworkPolicyIngressRule{{
				From:  []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &selector}},
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromString("metrics"))}},
			}}, policy.Spec.Ingress)
		})
	}
}
