/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// A development cluster, with clients for kubectl and Helm.

package test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 2 * time.Minute

var (
	foos        = schema.GroupVersionResource{Group: "samplecontroller.k8s.io", Version: "v1alpha1", Resource: "foos"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

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
	folder := t.TempDir()
	c := &cluster{T: t, kubeconfig: filepath.Join(folder, "kubeconfig")}
	// Not the test's context, which is done before the cluster is stopped.
	command := exec.CommandContext(context.Background(), devcluster(t), "up", "-data-dir="+filepath.Join(folder, "data"), "-kubeconfig="+c.kubeconfig)
	progress, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() {
		must(t, command.Process.Signal(syscall.SIGTERM))
		if err := command.Wait(); err != nil {
			t.Errorf("devcluster: %v", err)
		}
	})
	var said strings.Builder
	lines := bufio.NewScanner(io.TeeReader(progress, &said))
	for up := false; !up; up = strings.Contains(lines.Text(), "Kubernetes is up") {
		if !lines.Scan() {
			t.Fatalf("devcluster did not start:\n%s", said.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, progress) }() // until the process exits
	c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	must(t, err)
	c.config.QPS = -1
	c.objects, err = dynamic.NewForConfig(c.config)
	must(t, err)
	return c
}

// kubectl runs kubectl and fails the test if that fails.
func (c *cluster) kubectl(args ...string) string {
	c.Helper()
	out, err := exec.CommandContext(c.Context(), devcluster(c.T), append([]string{"kubectl", "--kubeconfig=" + c.kubeconfig}, args...)...).CombinedOutput()
	if err != nil {
		c.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
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
	must(c.T, helm.Init(flags, namespace, "secret"))
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
	must(c.T, err)
}

// rollback does what helm rollback --wait does.
func (c *cluster) rollback(release, namespace string, revision int) {
	c.Helper()
	rollback := action.NewRollback(c.helm(namespace))
	rollback.Version, rollback.ServerSideApply = revision, "auto"
	rollback.WaitStrategy, rollback.Timeout = kube.StatusWatcherStrategy, patience
	must(c.T, rollback.Run(release))
}

// uninstall does what helm uninstall --wait does.
func (c *cluster) uninstall(release, namespace string) {
	c.Helper()
	uninstall := action.NewUninstall(c.helm(namespace))
	uninstall.WaitStrategy, uninstall.Timeout = kube.StatusWatcherStrategy, patience
	_, err := uninstall.Run(release)
	must(c.T, err)
}

// as returns a client with the token of a service account.
func (c *cluster) as(namespace, account string) dynamic.Interface {
	c.Helper()
	admin, err := kubernetes.NewForConfig(c.config)
	must(c.T, err)
	token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(c.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(c.T, err)
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken, config.QPS = token.Status.Token, -1
	client, err := dynamic.NewForConfig(config)
	must(c.T, err)
	return client
}

// await repeats a request until its result is as wanted, because the API server learns of
// permissions and policies by watches.
func (c *cluster) await(what string, request func() error, wanted func(error) bool) {
	c.Helper()
	var last error
	err := wait.PollUntilContextTimeout(c.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = request()
		return wanted(last), nil
	})
	if err != nil {
		c.Fatalf("Waiting until %s: %v; the last answer: %v", what, err, last)
	}
}

func none(err error) bool { return err == nil }

// get reads an object, a cluster-scoped one if namespace is empty.
func (c *cluster) get(resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	c.Helper()
	got, err := c.objects.Resource(resource).Namespace(namespace).Get(c.Context(), name, metav1.GetOptions{})
	must(c.T, err)
	return got
}

// field returns a field of an object, as kubectl prints it.
func (c *cluster) field(object, namespace, path string) string {
	c.Helper()
	return c.kubectl("get", object, "--namespace="+namespace, fmt.Sprintf("--output=jsonpath={%s}", path))
}
