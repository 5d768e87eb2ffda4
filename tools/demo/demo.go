// SPDX-License-Identifier: Apache-2.0

// One run of the demo.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/audit"
	"example.com/sample-controller/internal/testcluster"
)

const (
	// readPeriod is how often the demo reads the audit log.
	readPeriod = 50 * time.Millisecond
	// stopGrace is the time that the controller has to stop by itself.
	stopGrace = 5 * time.Second
)

// sources describes the columns.
const sources = `All of this is from the API server's audit log: the ms since your last change, who sent
the request, and what it changed.`

// demo is one run in a cluster.
type demo struct {
	*options

	out   io.Writer
	style style
	// kubeconfig and dataDir are the cluster's.
	kubeconfig string
	dataDir    string

	controller *testcluster.Program
	// page is the process of the page, or nil.
	page      *testcluster.Process
	audit     audit.Log
	narrator  narrator
	stopwatch stopwatch
	client    kubernetes.Interface
	// act is the current act, steps are the changes that must still follow it, and next
	// are the acts after it.
	act   act
	steps []step
	next  []act
	// waiting is true after the demo has printed what the next act waits for.
	waiting bool
}

// runInCluster runs the demo in a cluster that devcluster has started for it, until a
// signal or, with -exit, the last step.
func runInCluster(opts *options, dataDir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	d := &demo{
		options:    opts,
		out:        os.Stdout,
		style:      styleOf(os.Stdout, os.Getenv),
		kubeconfig: os.Getenv(clientcmd.RecommendedConfigPathEnvVar),
		dataDir:    dataDir,
		audit:      audit.Log{Path: filepath.Join(dataDir, "audit.log")},
		next:       plan(opts.exit),
	}
	err := d.run(ctx)
	d.stopPage()
	if d.controller != nil {
		d.controller.Stop(stopGrace)
	}
	if ctx.Err() == nil {
		return err
	}
	if d.exit {
		return errors.New("stopped before the last step")
	}
	if d.act.command != nil {
		if err := d.draw(); err != nil {
			fmt.Fprintf(d.out, "\nNo picture: %v\n", err)
		}
	}
	fmt.Fprintln(d.out, "\nStopping the controller and the cluster")
	return nil
}

func (d *demo) run(ctx context.Context) error {
	config, err := testcluster.LoadConfig(d.kubeconfig)
	if err != nil {
		return err
	}
	if err := d.begin(ctx, config); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\n%s\n\n%s\n", sources, d.style.header())
	return d.follow(ctx)
}

// begin prepares the cluster, starts the controller, and makes the first change.
func (d *demo) begin(forever context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeoutCause(forever, d.timeout, fmt.Errorf("not done within %v (-timeout)", d.timeout))
	defer cancel()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	d.client = client
	if d.narrator.self, err = whoAmI(ctx, client); err != nil {
		return err
	}
	if d.narrator.resources, err = narratedResources(); err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	if err := d.kubectl(ctx, "apply", "-f", crdPath); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "apply", "-k", permissionsPath); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "wait", "--for=condition=Established", "-f", crdPath); err != nil {
		return err
	}
	if err := d.startController(ctx, client); err != nil {
		return err
	}
	d.startPage(ctx)
	return d.do(ctx)
}

// startController starts the controller as its own service account.
func (d *demo) startController(ctx context.Context, client kubernetes.Interface) error {
	// devcluster created both folders, and removes them with the cluster.
	kubeconfig := filepath.Join(d.dataDir, "config", sampleController+".kubeconfig")
	log := filepath.Join(d.dataDir, "logs", sampleController+".log")
	err := testcluster.WriteTokenKubeconfig(ctx, client, d.kubeconfig, kubeconfig, testcluster.ServiceAccount, testcluster.ServiceAccount)
	if err != nil {
		return err
	}
	// By its Lease, the page knows that the controller is running.
	flags := []string{"-v=2", "-leader-elect", "-leader-elect-resource-namespace=" + testcluster.ServiceAccount, "-kubeconfig=" + kubeconfig}
	typed := []string{"$", controllerPath}
	for _, flag := range flags {
		typed = append(typed, quote(flag))
	}
	fmt.Fprintln(d.out, strings.Join(typed, " "))
	if d.verbose {
		log = ""
	} else {
		fmt.Fprintf(d.out, "  its log is %s\n", quote(log))
	}
	// Without a context: Ctrl-C cancels everything else at once, and the controller
	// stops last.
	d.controller, err = testcluster.StartProgram(sampleController, log, exec.Command(controllerPath, flags...))
	return err
}

// kubectl prints a command as a user would type it, and runs it. It shows kubectl's
// output only if the command fails.
func (d *demo) kubectl(ctx context.Context, args ...string) error {
	typed := "kubectl " + strings.Join(args, " ")
	fmt.Fprintln(d.out, "$ "+typed)
	_, err := testcluster.Kubectl(ctx, devclusterPath, d.kubeconfig, args...)
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", typed, context.Cause(ctx))
	}
	return err
}
