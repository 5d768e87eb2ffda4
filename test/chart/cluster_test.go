// SPDX-License-Identifier: Apache-2.0

// A development cluster, with clients for kubectl and Helm.

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// patience limits each wait for the cluster.
const patience = 2 * time.Minute

var foos, deployments = footest.FooKind.Resource, footest.Primary.Resource

const definition = "foos.samplecontroller.k8s.io"

// cluster is a devcluster that runs until the test ends.
type cluster struct {
	*testing.T
	kubeconfig string
	config     *rest.Config
	objects    dynamic.Interface
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	up, err := testcluster.StartCluster(t.Context(), devcluster(t), filepath.Join(t.TempDir(), "data"))
	footest.Must(t, err)
	t.Cleanup(func() {
		if err := up.Stop(); err != nil {
			t.Errorf("%v\n%s", err, up.Log)
		}
	})
	c := &cluster{T: t, kubeconfig: up.Kubeconfig}
	c.config, err = testcluster.LoadConfig(c.kubeconfig)
	footest.Must(t, err)
	c.objects, err = dynamic.NewForConfig(c.config)
	footest.Must(t, err)
	return c
}

// kubectl runs kubectl and fails the test if that fails.
func (c *cluster) kubectl(args ...string) string {
	c.Helper()
	out, err := testcluster.Kubectl(c.Context(), devcluster(c.T), c.kubeconfig, args...)
	footest.Must(c.T, err)
	return out
}

// helm runs Helm's actions on the releases of a namespace.
func (c *cluster) helm(namespace string) *action.Configuration {
	c.Helper()
	flags := genericclioptions.NewConfigFlags(false).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.QPS = -1
		return config
	})
	flags.KubeConfig, flags.Namespace = &c.kubeconfig, &namespace
	helm := action.NewConfiguration()
	footest.Must(c.T, helm.Init(flags, namespace, "secret"))
	return helm
}

// install does what helm install --create-namespace --wait does.
func (c *cluster) install(release, namespace, values string, options ...func(*action.Install)) error {
	c.Helper()
	return c.installChart(release, namespace, loadChart(c.T), values, options...)
}

func (c *cluster) installChart(release, namespace string, chart *chartv2.Chart, values string, options ...func(*action.Install)) error {
	c.Helper()
	install := action.NewInstall(c.helm(namespace))
	install.ReleaseName, install.Namespace, install.CreateNamespace = release, namespace, true
	install.WaitStrategy, install.Timeout = kube.StatusWatcherStrategy, patience
	for _, option := range options {
		option(install)
	}
	_, err := install.RunWithContext(c.Context(), chart, parse(c.T, values))
	return err
}

// upgrade does what helm upgrade --wait does.
func (c *cluster) upgrade(release, namespace string, chart *chartv2.Chart, values string) {
	c.Helper()
	upgrade := action.NewUpgrade(c.helm(namespace))
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = namespace, kube.StatusWatcherStrategy, patience
	_, err := upgrade.RunWithContext(c.Context(), release, chart, parse(c.T, values))
	footest.Must(c.T, err)
}

// rollback does what helm rollback --wait does.
func (c *cluster) rollback(release, namespace string, revision int) {
	c.Helper()
	rollback := action.NewRollback(c.helm(namespace))
	rollback.Version, rollback.ServerSideApply = revision, "auto"
	rollback.WaitStrategy, rollback.Timeout = kube.StatusWatcherStrategy, patience
	footest.Must(c.T, rollback.Run(release))
}

// uninstall does what helm uninstall --wait does.
func (c *cluster) uninstall(release, namespace string) {
	c.Helper()
	uninstall := action.NewUninstall(c.helm(namespace))
	uninstall.WaitStrategy, uninstall.Timeout = kube.StatusWatcherStrategy, patience
	_, err := uninstall.Run(release)
	footest.Must(c.T, err)
}

// get reads an object. The namespace is empty for a cluster-scoped object.
func (c *cluster) get(resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	c.Helper()
	got, err := c.objects.Resource(resource).Namespace(namespace).Get(c.Context(), name, metav1.GetOptions{})
	footest.Must(c.T, err)
	return got
}

// field returns a field of an object, as kubectl prints it.
func (c *cluster) field(object, namespace, path string) string {
	c.Helper()
	return c.kubectl("get", object, "--namespace="+namespace, fmt.Sprintf("--output=jsonpath={%s}", path))
}

// TestHelmWaitsForAFoo installs releases that are nothing but a Foo.
func TestHelmWaitsForAFoo(t *testing.T) {
	c := newCluster(t)
	footest.Must(t, testcluster.InstallCRDs(t.Context(), os.Getenv("DEVCLUSTER_BIN"), c.kubeconfig, root))

	if err := c.installFoo("unseen", 3*time.Second); err == nil || !strings.Contains(err.Error(), "status: InProgress") {
		t.Errorf("Without a controller, Helm says of a Foo: %v", err)
	}
	c.startController()
	footest.Must(t, c.installFoo("ready", patience))
	if got := c.field("foo/ready", "default", ".status.conditions[0].status"); got != "True" {
		t.Errorf("Helm has waited, and the Foo's condition Ready is %s", got)
	}

	// Helm must not wait for its timeout if somebody has to act.
	c.kubectl("create", "deployment", "taken", "--image=nginx")
	started := time.Now()
	err := c.installFoo("taken", patience)
	if took := time.Since(started); err == nil || !strings.Contains(err.Error(), "status: Failed") || took > patience/2 {
		t.Errorf("Of a Foo whose name is taken, Helm says after %s: %v", took.Round(time.Second), err)
	}
}

// installFoo does what helm install --wait does with a chart of a Foo, which has the name of
// the release.
func (c *cluster) installFoo(release string, timeout time.Duration) error {
	c.Helper()
	const foo = "apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Foo\nmetadata: {name: {{.Release.Name}}}\nspec: {deploymentName: {{.Release.Name}}, replicas: 2}\n"
	chart := &chartv2.Chart{
		Metadata:  &chartv2.Metadata{APIVersion: chartv2.APIVersionV2, Name: "foo", Version: "1.0.0"},
		Templates: []*common.File{{Name: "templates/foo.yaml", Data: []byte(foo)}},
	}
	return c.installChart(release, "default", chart, "", func(install *action.Install) { install.Timeout = timeout })
}

// startController builds and starts the controller, with the rights of an administrator.
func (c *cluster) startController() {
	c.Helper()
	path := filepath.Join(c.TempDir(), program)
	footest.Must(c.T, testcluster.Build(c.Context(), root, path, "."))
	running, err := testcluster.StartProcess(exec.Command(path, "-kubeconfig="+c.kubeconfig))
	footest.Must(c.T, err)
	c.Cleanup(running.Kill)
}
