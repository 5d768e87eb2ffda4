// SPDX-License-Identifier: Apache-2.0

// A development cluster, with clients for kubectl and Helm.

package test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
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
	c.objects, err = dynamic.NewForConfig(c.config)
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
	install := action.NewInstall(c.helm(namespace))
	install.ReleaseName, install.Namespace, install.CreateNamespace = release, namespace, true
	install.WaitStrategy, install.Timeout = kube.StatusWatcherStrategy, patience
	for _, option := range options {
		option(install)
	}
	_, err := install.RunWithContext(c.Context(), loadChart(c.T), parse(c.T, values))
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
