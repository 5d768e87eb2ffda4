// SPDX-License-Identifier: Apache-2.0

// How the tests run kubectl and devcluster.

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// kubectl runs kubectl in the namespace and returns its output. The test fails if kubectl
// fails.
func (ns *namespace) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	command := kubectlCommand(t, append([]string{"--kubeconfig=" + ns.in.kubeconfig, "--namespace=" + ns.name}, args...))
	out, err := command.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("%v: %v\n%s%s", command.Args, err, out, exit.Stderr)
		}
		t.Fatalf("%v: %v", command.Args, err)
	}
	return string(out)
}

// kubectlCommand returns a command that runs kubectl: devcluster's, or the one on PATH.
// If there is none it skips the test.
func kubectlCommand(t *testing.T, args []string) *exec.Cmd {
	t.Helper()
	program := "kubectl"
	if devcluster := os.Getenv("DEVCLUSTER_BIN"); devcluster != "" {
		program = devcluster
		args = append([]string{"kubectl"}, args...)
	} else if _, err := exec.LookPath(program); err != nil {
		t.Skip("no kubectl: DEVCLUSTER_BIN is not set and there is none on PATH")
	}
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.kubeconfig)
	return command
}

// needsDevclusterProgram returns the path of the devcluster program, which starts a
// cluster for one test. If there is none it skips the test.
func needsDevclusterProgram(t *testing.T) string {
	t.Helper()
	program := os.Getenv("DEVCLUSTER_BIN")
	if program == "" {
		t.Skip("DEVCLUSTER_BIN is not set, and this test needs a cluster of its own")
	}
	return program
}
