// SPDX-License-Identifier: Apache-2.0

// A test of Helm's wait for a Foo, while the garbage collector is away.

package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// TestHelmWaitsForTheCollector uninstalls a release with a Foo, and installs it again while
// kube-controller-manager does nothing for 8 s, as while its leader changes. Helm gives up on a Foo
// that is Stalled.
func TestHelmWaitsForTheCollector(t *testing.T) {
	c := newCluster(t)
	footest.Must(t, testcluster.InstallCRDs(t.Context(), testcluster.Devcluster(t), c.kubeconfig, root))
	program := filepath.Join(t.TempDir(), "controller")
	footest.Must(t, testcluster.Build(t.Context(), root, program, "."))
	controller, err := testcluster.StartProgram("controller", "", exec.Command(program, "-kubeconfig="+c.kubeconfig))
	footest.Must(t, err)
	t.Cleanup(func() { controller.Stop(10 * time.Second) })
	chart := filepath.Join(t.TempDir(), "web")
	footest.Must(t, os.MkdirAll(filepath.Join(chart, "templates"), 0o700))
	for name, text := range map[string]string{
		"Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}",
		"templates/foo.yaml": "{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: Foo, metadata: {name: web}, " +
			"spec: {deploymentName: web, replicas: 2}}",
	} {
		footest.Must(t, os.WriteFile(filepath.Join(chart, name), []byte(text), 0o600))
	}
	footest.Must(t, c.helm("default", "", "install", "web", chart))
	first := c.field("deployment/web", "default", ".metadata.uid")

	manager := c.processID("kube-controller-manager")
	footest.Must(t, syscall.Kill(manager, syscall.SIGSTOP))
	resumed := time.AfterFunc(8*time.Second, func() { _ = syscall.Kill(manager, syscall.SIGCONT) })
	defer resumed.Stop()
	footest.Must(t, c.helm("default", "", "uninstall", "web"))
	began := time.Now()
	footest.Must(t, c.helm("default", "", "install", "web", chart))
	if took := time.Since(began); took < time.Second {
		t.Errorf("Helm believed a Foo whose Deployment could not exist yet, after %v", took)
	}
	if second := c.field("deployment/web", "default", ".metadata.uid"); second == first {
		t.Error("the Foo is ready with the Deployment of the first")
	}
}

// processID returns the ID of a process of the cluster.
func (c *cluster) processID(name string) int {
	c.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	footest.Must(c.T, err)
	for _, file := range files {
		line, err := os.ReadFile(file) // the process may have ended
		arguments := bytes.Split(line, []byte{0})
		if err == nil && len(arguments) > 1 && string(arguments[1]) == name && bytes.Contains(line, []byte(filepath.Dir(c.kubeconfig))) {
			id, err := strconv.Atoi(strings.Split(file, "/")[2])
			footest.Must(c.T, err)
			return id
		}
	}
	c.Fatalf("the cluster has no process %s", name)
	return 0
}
