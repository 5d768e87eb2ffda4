// SPDX-License-Identifier: Apache-2.0

// Tests of Helm's own wait for a release with a Foo.

package test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"

	"example.com/sample-controller/test/testcluster"
)

// TestHelmWaitsForAFoo installs releases that are nothing but a Foo.
func TestHelmWaitsForAFoo(t *testing.T) {
	c := newCluster(t)
	c.kubectl("apply", "--filename="+filepath.Join(root, "artifacts/crd/samplecontroller.k8s.io_foos.yaml"))
	c.kubectl("wait", "--for=condition=Established", "crd/"+definition)

	if err := c.installFoo("unseen", 3*time.Second); err == nil || !strings.Contains(err.Error(), "status: InProgress") {
		t.Errorf("Without a controller, Helm says of a Foo: %v", err)
	}
	c.startController()
	must(t, c.installFoo("ready", patience))
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
	install := action.NewInstall(c.helm("default"))
	install.ReleaseName, install.Namespace, install.WaitStrategy, install.Timeout = release, "default", kube.StatusWatcherStrategy, timeout
	_, err := install.RunWithContext(c.Context(), chart, nil)
	return err
}

// startController builds and starts the controller, with the rights of an administrator.
func (c *cluster) startController() {
	c.Helper()
	path := filepath.Join(c.TempDir(), program)
	build := exec.CommandContext(c.Context(), "go", "build", "-o", path, ".")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		must(c.T, errors.Join(err, errors.New(string(out))))
	}
	running, err := testcluster.StartProcess(exec.Command(path, "-kubeconfig="+c.kubeconfig))
	must(c.T, err)
	c.Cleanup(running.Kill)
}
