// SPDX-License-Identifier: Apache-2.0

// Tests of install, upgrade, rollback and uninstall, on a development cluster.

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// TestReleaseLifecycle installs an older chart, upgrades, rolls back and uninstalls it. The CRD and the
// policy change with the chart; Foos must not.
func TestReleaseLifecycle(t *testing.T) {
	c := newCluster(t)
	const release, namespace, name = "blue", "team", "blue-sample-controller"
	older := filepath.Join(t.TempDir(), "older")
	footest.Must(t, os.CopyFS(older, os.DirFS(folder)))
	replaceIn(t, older+"/files/crds/samplecontroller.k8s.io_foos.yaml", "description: Number of Pods that are available", "description: Older")
	replaceIn(t, older+"/files/admission-policy.yaml", "<= 10", "<= 5")
	isOlder := func(after string, crd, policy bool) {
		t.Helper()
		description := c.field("crd/"+definition, "", ".spec.versions[0].additionalPrinterColumns[2].description")
		limit := c.field("validatingadmissionpolicy/"+name+".team", "", ".spec.validations[*].expression")
		if (description == "Older") != crd || strings.Contains(limit, "<= 5") != policy {
			t.Errorf("After %s, the CRD's description is %q, and the policy's expressions are %s", after, description, limit)
		}
	}
	footest.Must(t, c.helm(namespace, "", "install", release, older, "--create-namespace"))
	c.kubectl("wait", "--for=condition=Established", "crd/"+definition)
	isUnchanged := c.makeFoo(namespace, name)
	isOlder("the installation", true, true)

	footest.Must(t, c.helm(namespace, "{replicas: 3, workers: 8, networkPolicy: {enabled: false}}", "upgrade", release, folder))
	if got := c.field("deployment/"+name, namespace, ".status.availableReplicas"); got != "3" {
		t.Errorf("After the upgrade, %s replicas are available", got)
	}
	if got := c.kubectl("get", "networkpolicy", "--namespace="+namespace, "--output=name"); strings.Contains(got, name) {
		t.Errorf("After the upgrade, %s still exists", got)
	}
	isOlder("the upgrade", false, false)
	footest.Must(t, c.helm(namespace, "", "rollback", release, "1"))
	isOlder("the rollback", true, true)
	if got := c.field("deployment/"+name, namespace, ".spec.replicas"); got != "2" {
		t.Errorf("After the rollback, replicas are %s", got)
	}
	c.field("networkpolicy/"+name, namespace, ".metadata.name")
	c.isRestrictedByPolicy(namespace, name, "nginx:latest")

	// A chart without the CRD leaves the CRD in the cluster unchanged.
	footest.Must(t, c.helm(namespace, "crds: {install: false}", "upgrade", release, folder))
	isOlder("an upgrade without the CRD", true, false)

	footest.Must(t, c.helm(namespace, "", "uninstall", release))
	const kinds = "deployment,serviceaccount,role,rolebinding,service,poddisruptionbudget,networkpolicy," +
		"clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding,flowschema"
	if got := c.kubectl("get", kinds, "--namespace="+namespace, "--selector=app.kubernetes.io/instance="+release, "--output=name"); got != "" {
		t.Errorf("After the uninstall, these still exist: %s", got)
	}
	isUnchanged()

	// The CRD is still installed. Another release takes it over or ignores it.
	if err := c.install("green", "elsewhere", ""); err == nil || !strings.Contains(err.Error(), definition) {
		t.Errorf("Another release takes over the CRD without --take-ownership: %v", err)
	}
	footest.Must(t, c.install("green", "elsewhere", "", "--take-ownership"))
	footest.Must(t, c.install("red", "elsewhere", "{crds: {install: false}, watchNamespace: default, nginxImage: mirror.example.com/nginx:1}"))
	c.isRestrictedByPolicy("elsewhere", "green-sample-controller", "nginx:latest")
	c.isRestrictedByPolicy("elsewhere", "red-sample-controller", "mirror.example.com/nginx:1")
	isUnchanged()
}

// TestReleaseTakesOverFromKustomize follows the README. The Foos must stay.
func TestReleaseTakesOverFromKustomize(t *testing.T) {
	c := newCluster(t)
	c.kubectl("apply", "--server-side", "--kustomize="+overlay(t, "resources: [BASE/deploy]"))
	c.kubectl("wait", "--for=condition=Established", "crd/"+definition)
	isUnchanged := c.makeFoo(program, program)
	c.kubectl("delete", "deployment", "--namespace="+program, program)
	footest.Must(t, c.install(program, program, "", "--take-ownership", "--force-conflicts"))
	isUnchanged()
	c.isRestrictedByPolicy(program, program, "nginx:latest")
	footest.Must(t, c.helm(program, "", "uninstall", program))
	isUnchanged()
}

// replaceIn replaces text in a file.
func replaceIn(t *testing.T, file, from, to string) {
	t.Helper()
	text, err := os.ReadFile(file)
	footest.Must(t, err)
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s lacks %q", file, from)
	}
	footest.Must(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), from, to)), 0o600))
}

// makeFoo creates the example of a Foo, once the account may write its Deployment. It returns a check that the
// Foo was not recreated, or its spec changed: what it owns goes only with it.
func (c *cluster) makeFoo(namespace, account string) (isUnchanged func()) {
	c.Helper()
	c.isRestrictedByPolicy(namespace, account, "nginx:latest")
	c.kubectl("create", "--filename="+root+"/artifacts/examples/example-foo.yaml")
	state := func() string {
		return c.field("foo/example-foo", "default", ".metadata.uid} {.metadata.generation} {.metadata.deletionTimestamp")
	}
	before := state()
	return func() {
		c.Helper()
		footest.ExpectEqual(c.T, "the Foo", before, state())
	}
}

// isRestrictedByPolicy checks with a token of the service account that it may write a Foo's
// Deployment with an image, but none without an owner.
func (c *cluster) isRestrictedByPolicy(namespace, account, image string) {
	c.Helper()
	config, err := testcluster.ConfigOf(c.Context(), c.config, namespace, account)
	footest.Must(c.T, err)
	child := footest.Unstored("stolen")
	footest.WithImage(image)(child)
	footest.Must(c.T, testcluster.AwaitFoosAsOwners(c.Context(), config, "default", deployments, child))
	footest.Must(c.T, testcluster.AwaitPolicy(c.Context(), config, "default", deployments, child))
}

// patience limits each wait for the cluster.
const patience = 2 * time.Minute

var deployments = footest.Primary.Resource

const definition = "foos.samplecontroller.k8s.io"

// cluster is a devcluster that runs until the test ends.
type cluster struct {
	*testing.T
	kubeconfig string
	config     *rest.Config
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	up, err := testcluster.StartCluster(t.Context(), testcluster.Devcluster(t), filepath.Join(t.TempDir(), "data"))
	footest.Must(t, err)
	t.Cleanup(func() {
		if err := up.Stop(); err != nil {
			t.Errorf("%v\n%s", err, up.Log)
		}
	})
	c := &cluster{T: t, kubeconfig: up.Kubeconfig}
	c.config, err = testcluster.LoadConfig(c.kubeconfig)
	footest.Must(t, err)
	return c
}

// kubectl runs kubectl and fails the test if that fails.
func (c *cluster) kubectl(args ...string) string {
	c.Helper()
	out, err := testcluster.Kubectl(c.Context(), testcluster.Devcluster(c.T), c.kubeconfig, args...)
	footest.Must(c.T, err)
	return out
}

// helm runs Helm in a namespace, and waits until its changes have had their effect.
func (c *cluster) helm(namespace, values string, args ...string) error {
	c.Helper()
	args = append(args, "--kubeconfig="+c.kubeconfig, "--namespace="+namespace, "--wait", "--timeout="+patience.String())
	_, err := helm(c.T, values, args...)
	return err
}

// install installs a release, with more flags.
func (c *cluster) install(release, namespace, values string, flags ...string) error {
	c.Helper()
	return c.helm(namespace, values, append([]string{"install", release, folder, "--create-namespace"}, flags...)...)
}

// field returns a field of an object, as kubectl prints it.
func (c *cluster) field(object, namespace, path string) string {
	c.Helper()
	return c.kubectl("get", object, "--namespace="+namespace, fmt.Sprintf("--output=jsonpath={%s}", path))
}
