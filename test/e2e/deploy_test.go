// SPDX-License-Identifier: Apache-2.0

// The shipped manifests: how they are read, and how they are installed in a cluster of
// their own, checked, and uninstalled.

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// imageAnnotation sets the image of Foos' Pods. The policy reads it from the service
// account, the program from its own Pod.
const imageAnnotation = "samplecontroller.k8s.io/image"

// deployFolder is the folder that an administrator applies.
const deployFolder = moduleRoot + "/artifacts/deploy"

// TestTheManifestsInstallTheController starts a cluster of its own, because the manifests
// have fixed names. KWOK simulates its nodes and the controller's Pods; the program runs
// as a process with the token and the arguments of the Pods.
func TestTheManifestsInstallTheController(t *testing.T) {
	t.Parallel()
	s := newSite(newOwnCluster(t, "-nodes=2"))
	if s.emulates != cluster.emulates {
		t.Errorf("This cluster emulates %q, but the cluster under test emulates %q", s.emulates, cluster.emulates)
	}
	for _, variant := range []struct{ name, folder, elsewhere string }{
		{"for all namespaces", deployFolder, "yes\n"},
		{"for one namespace", deployFolder + "/namespaced", "no\n"},
	} {
		// Not parallel, because the variants have the same names.
		if !t.Run(variant.name, func(t *testing.T) { s.checkInstallation(t, variant.folder, variant.elsewhere) }) {
			break
		}
	}
}

// checkInstallation installs the controller, checks the installation, and uninstalls it.
// elsewhere is kubectl's answer to whether the controller may list Foos of other
// namespaces.
func (s *site) checkInstallation(t *testing.T, folder, elsewhere string) {
	t.Helper()
	s.install(t, folder)
	s.checkPods(t)
	s.checkRestricted(t)
	s.checkPolicy(t)
	s.checkUsers(t)
	if out, _ := s.try(t, "auth", "can-i", "list", "foos.samplecontroller.k8s.io", "-n=kube-public", "--as="+s.user); out != elsewhere {
		t.Errorf("Whether it may list Foos of another namespace: %s", out)
	}
	s.checkProgram(t)
	s.uninstall(t, folder)
}

// site is a cluster to install the controller in.
type site struct {
	*testCluster
	// user is the user name of the controller's account.
	user string
}

func newSite(in *testCluster) *site {
	installed := account{namespace: shippedNamespace}
	return &site{testCluster: in, user: installed.user()}
}

// try runs kubectl and returns its output.
func (s *site) try(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	command := kubectlCommand(t, append([]string{"--kubeconfig=" + s.kubeconfig}, args...))
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), errs.String()
}

// kubectl runs kubectl, and fails the test if it prints an error or a warning.
func (s *site) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr := s.try(t, args...)
	if stderr != "" {
		t.Fatalf("kubectl %s: %s", strings.Join(args, " "), stderr)
	}
	return stdout
}

// install applies a folder, first as a dry run. The dry run needs the namespace, with its
// Pod Security profile.
func (s *site) install(t *testing.T, folder string) {
	t.Helper()
	s.kubectl(t, "apply", "-f="+deployFolder+"/permissions/namespace.yaml")
	s.kubectl(t, "apply", "-k="+folder, "--dry-run=server")
	if pods, err := s.kube.AppsV1().Deployments(shippedNamespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
		t.Fatalf("After a dry run there are %d Deployments (%v), want none", len(pods.Items), err)
	}
	s.kubectl(t, "apply", "-k="+folder)
	s.kubectl(t, "wait", "--for=condition=Established", "crd/"+crdName)
}

// checkPods checks that two Pods are admitted, that they are on two nodes, and that one
// may be evicted.
func (s *site) checkPods(t *testing.T) {
	t.Helper()
	inNamespace := "-n=" + shippedNamespace
	patience := "--timeout=" + cluster.patience().String()
	s.kubectl(t, "wait", inNamespace, "deployment/sample-controller", "--for=jsonpath={.status.readyReplicas}=2", patience)
	s.kubectl(t, "wait", inNamespace, "pdb/sample-controller", "--for=jsonpath={.status.disruptionsAllowed}=1", patience)
	pods, err := s.kube.CoreV1().Pods(shippedNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
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
}

// checkRestricted checks that the Pod Security profile is in force. Otherwise checkPods
// would show nothing.
func (s *site) checkRestricted(t *testing.T) {
	t.Helper()
	_, stderr := s.try(t, "run", "plain", "--image=nginx", "-n="+shippedNamespace, "--dry-run=server")
	if !strings.Contains(stderr, `violates PodSecurity "restricted:latest"`) {
		t.Errorf("For a Pod without a security context kubectl printed %q, want a refusal", stderr)
	}
}

// checkPolicy checks that the admission policies have no type errors, and that they apply
// to the account.
func (s *site) checkPolicy(t *testing.T) {
	t.Helper()
	for policy := range strings.FieldsSeq(s.kubectl(t, "get", "validatingadmissionpolicies", "-o=name", "-l=app.kubernetes.io/name=sample-controller")) {
		s.kubectl(t, "wait", policy, "--for=jsonpath={.status.observedGeneration}=1", "--timeout="+cluster.patience().String())
		if warnings := s.kubectl(t, "get", policy, "-o=jsonpath={.status.typeChecking.expressionWarnings}"); warnings != "" {
			t.Errorf("The server warns of the expressions of %s: %s", policy, warnings)
		}
	}
	_, stderr := s.try(t, "create", "deployment", "mine", "--image=busybox", "--as="+s.user, "--dry-run=server")
	if !strings.Contains(stderr, "ValidatingAdmissionPolicy 'sample-controller'") {
		t.Errorf("For a Deployment without an owner kubectl printed %q, want a refusal by the policy", stderr)
	}
}

// checkUsers checks that the built-in roles include Foos. A controller of Kubernetes
// aggregates the shipped roles into them.
func (s *site) checkUsers(t *testing.T) {
	t.Helper()
	for _, role := range []string{"view", "edit"} {
		s.kubectl(t, "create", "rolebinding", role, "--clusterrole="+role, "--user="+role)
	}
	may := func(user, verb string, subresource ...string) bool {
		allowed, err := isAllowed(t.Context(), s.kube, user, grant{
			namespace: metav1.NamespaceDefault, group: samplev1alpha1.GroupName, resource: "foos", verb: verb,
			subresource: strings.Join(subresource, ""),
		})
		if err != nil {
			t.Fatal(err)
		}
		return allowed
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, cluster.patience(), true, func(context.Context) (bool, error) {
		return may("view", "get") && may("edit", "get") && may("edit", "create"), nil
	})
	if err != nil {
		t.Errorf("Waiting until users with the role view or edit may read or write Foos: %v", err)
	}
	if may("view", "create") || may("nobody", "get") {
		t.Error("Users without these roles may read or write Foos, too")
	}
	if may("edit", "update", "status") || may("edit", "patch", "status") {
		t.Error("Users with the role edit may write the status, which only the controller should write")
	}
	s.kubectl(t, "delete", "rolebinding", "view", "edit")
}

// checkProgram runs the program with the permissions and the arguments of a Pod.
func (s *site) checkProgram(t *testing.T) {
	t.Helper()
	deployment, err := s.kube.AppsV1().Deployments(shippedNamespace).Get(t.Context(), "sample-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	installed, err := useAccount(t.Context(), s.kube, s.kubeconfig, shippedNamespace, t.TempDir())
	if err == nil {
		err = installed.awaitFoosAsOwners(t.Context(), metav1.NamespaceDefault)
	}
	if err != nil {
		t.Fatal(err)
	}
	ns := s.inDefault()
	defer ns.witness(t)()
	p := startController(t, append([]string{"-kubeconfig=" + installed.kubeconfig}, argsOnThisMachine(deployment)...)...)
	p.awaitLog(t, "Starting workers", 1)
	ns.createReadyFoo(t, newFoo("web"))
	p.stop(t)
	// The garbage collector discovers new kinds every 30 s, and may not know Foos yet.
	s.kubectl(t, "delete", "--ignore-not-found", "foo/web", "deployment/web")
	if got := p.log.Count("forbidden"); got > 0 {
		t.Errorf("The API server refused %d requests:\n%s", got, p.log)
	}
}

// argsOnThisMachine returns the arguments of the manifest, with free ports.
func argsOnThisMachine(deployment *appsv1.Deployment) []string {
	args := slices.Clone(deployment.Spec.Template.Spec.Containers[0].Args)
	for i := range args {
		if flag, _, found := strings.Cut(args[i], "-bind-address=:"); found {
			args[i] = flag + "-bind-address=127.0.0.1:0"
		}
		args[i] = strings.ReplaceAll(args[i], "$(FOO_IMAGE)", deployment.Spec.Template.Annotations[imageAnnotation])
	}
	return args
}

// uninstall deletes the installed objects, and waits until the namespace is gone.
func (s *site) uninstall(t *testing.T, folder string) {
	t.Helper()
	s.kubectl(t, "delete", "-k="+folder, "--timeout="+cluster.patience().String())
	for _, kind := range []string{"clusterroles", "clusterrolebindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "crds", "namespaces"} {
		if left := s.kubectl(t, "get", kind, "-o=name"); strings.Contains(left, "sample") {
			t.Errorf("Objects are left: %s", left)
		}
	}
}

// The documents' example, with a digest after the tag.
const (
	exampleImage  = "registry.example.com:5000/team/sample-controller"
	exampleDigest = "sha256:4b8ffe8c5cd8b2ed94e1d5bd1f2ec0dbf3a5cbe1b3f6dd4f7f4b2c7e2f0e2a11"
	crdKind       = "CustomResourceDefinition"
)

// TestTheInstallFileEqualsTheFolder checks that the file of make install-yaml is the
// rendered folder with the image set, and that an API server accepts it by server-side
// apply, which requires each field to be valid as written.
func TestTheInstallFileEqualsTheFolder(t *testing.T) {
	t.Parallel()
	own := newSite(newBareCluster(t))
	file := filepath.Join(t.TempDir(), "install.yaml")
	script, err := filepath.Abs(moduleRoot + "/hack/install-yaml.sh")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), script, exampleImage+":v1@"+exampleDigest, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	inFile, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	overlay := writeOverlay(t, deployFolder, "images: [{name: sample-controller, newName: '"+exampleImage+"', newTag: v1, digest: '"+exampleDigest+"'}]\n")
	if want := kustomize(t, overlay); string(inFile) != want {
		t.Errorf("The file is\n%s\nwant the output of kustomize:\n%s", inFile, want)
	}
	own.kubectl(t, "apply", "--server-side", "-f="+file)
	own.kubectl(t, "apply", "--server-side", "-f="+file)
	own.kubectl(t, "get", "-f="+file)
	image := own.kubectl(t, "get", "deployment", shippedName, "-n="+shippedNamespace, "-o=jsonpath={.spec.template.spec.containers[0].image}")
	if want := exampleImage + ":v1@" + exampleDigest; image != want {
		t.Errorf("The image is %s, want %s", image, want)
	}
}

// TestAnOverlayCanLeaveOutTheCRD checks that an overlay can remove the CRD, for users who
// install it separately, without removing anything else.
func TestAnOverlayCanLeaveOutTheCRD(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{deployFolder, deployFolder + "/namespaced"} {
		whole := objectsOf(t, folder)
		without := objectsOf(t, writeOverlay(t, folder, "patches:\n- target: {kind: CustomResourceDefinition}\n"+
			"  patch: '{$patch: delete, kind: CustomResourceDefinition, metadata: {name: any}}'\n"))
		whole = slices.DeleteFunc(whole, func(o *unstructured.Unstructured) bool { return o.GetKind() == crdKind })
		if got, want := namesOf(without), namesOf(whole); !slices.Equal(got, want) {
			t.Errorf("Without the CRD %s has %v, want %v", folder, got, want)
		}
	}
}

// TestTheCRDIsProtectedFromPruning checks the annotations that stop deployment tools from
// deleting the CRD, and all Foos with it.
func TestTheCRDIsProtectedFromPruning(t *testing.T) {
	t.Parallel()
	for _, object := range objectsOf(t, deployFolder) {
		if object.GetKind() != crdKind {
			continue
		}
		for key, want := range map[string]string{
			"kustomize.toolkit.fluxcd.io/prune": "disabled",
			"argocd.argoproj.io/sync-options":   "Prune=false,Delete=false",
			"helm.sh/resource-policy":           "keep",
		} {
			if got := object.GetAnnotations()[key]; got != want {
				t.Errorf("%s has %s: %q, want %q", object.GetName(), key, got, want)
			}
		}
		return
	}
	t.Error("There is no CRD")
}

// namesOf returns the sorted kinds, namespaces and names of objects.
func namesOf(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
	}
	slices.Sort(names)
	return names
}
