// SPDX-License-Identifier: Apache-2.0

// A development cluster, with clients for kubectl and Helm.

package test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// helm runs Helm in a namespace, and waits until what it changes is as asked.
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
