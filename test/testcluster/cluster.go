// SPDX-License-Identifier: Apache-2.0

// Development clusters.

package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	startLimit = 2 * time.Minute
	stopLimit  = time.Minute
	// command runs in the cluster. It prints ready once the cluster is up, and ends with
	// its standard input, so that the cluster stops when this process ends in any way.
	ready   = "ready"
	command = "echo " + ready + "; exec cat"
)

// ControlPlaneOnly is a flag of devcluster for a cluster of only an API server and etcd.
// Nothing makes Pods, and none run.
const ControlPlaneOnly = "-without=kube-controller-manager,kube-scheduler,kwok"

// Cluster is a development cluster that this process has started.
type Cluster struct {
	*Process
	// Log contains the output of devcluster.
	Log *Log
	// Data is the folder of the cluster's data, and Kubeconfig the path of the
	// administrator's kubeconfig in it.
	Data, Kubeconfig string

	stdin io.Closer
}

// StartCluster starts devcluster, whose path is program, and returns when the cluster is
// up. Stop ends the cluster.
func StartCluster(ctx context.Context, program, data string, flags ...string) (*Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not up within %v", startLimit))
	defer cancel()
	args := append([]string{"run", "-data-dir=" + data}, flags...)
	devcluster := exec.Command(program, append(args, "--", "sh", "-c", command)...)
	c := &Cluster{Log: &Log{}, Data: data, Kubeconfig: filepath.Join(data, "kubeconfig")}
	devcluster.Stdout, devcluster.Stderr = c.Log, c.Log
	var err error
	if c.stdin, err = devcluster.StdinPipe(); err != nil {
		return nil, err
	}
	if c.Process, err = StartProcess(devcluster); err != nil {
		return nil, err
	}
	if err := c.Log.Await(ctx, c.Process, ready+"\n", 1); err != nil {
		return nil, fmt.Errorf("starting a cluster: %w\n%s", errors.Join(err, c.Stop()), c.Log)
	}
	return c, nil
}

// AuditLog returns the path of the API server's audit log.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Data, "audit.log") }

// Stop ends the cluster, and returns an error if devcluster did not exit cleanly.
// devcluster removes the data.
func (c *Cluster) Stop() error {
	_ = c.stdin.Close() // It may have ended.
	if !c.Wait(stopLimit) {
		c.Kill() // The processes of the cluster end with it.
	}
	if !c.State().Success() {
		return fmt.Errorf("devcluster: %s", c.State())
	}
	return nil
}

// Kubectl runs devcluster's kubectl and returns what it prints.
func Kubectl(ctx context.Context, program, kubeconfig string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, program, append([]string{"kubectl", "--kubeconfig=" + kubeconfig}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
