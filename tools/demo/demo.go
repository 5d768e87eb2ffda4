// SPDX-License-Identifier: Apache-2.0

// One run of the demo: the controller, the page, the acts of a user, and the timeline at the end.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/test/testcluster"
	"example.com/sample-controller/tools/internal/timeline"
)

const (
	// stepTimeout limits each step, and stopGrace is how long the controller may take to stop.
	stepTimeout = 2 * time.Minute
	stopGrace   = 5 * time.Second
)

// sources describes the columns.
const sources = `Everything below comes from the API server's audit log: the ms since your last change, who
sent the request, and what it wrote.`

// demo is one run in a cluster.
type demo struct {
	*options

	out io.Writer
	// kubeconfig and dataDir are the cluster's.
	kubeconfig string
	dataDir    string

	controller *testcluster.Program
	// page is the process of the page, or nil.
	page  *testcluster.Process
	audit audit.Log
	log   timeline.Log

	// latest is when the log last grew, and unprinted is true if nothing has been printed since.
	latest    time.Time
	unprinted bool
	// printed holds the numbers of the writes that have been printed. The last one belongs to
	// panel, and came lasted after the panel's first write.
	printed sets.Set[int]
	panel   int
	lasted  time.Duration
}

func (d *demo) run(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\n%s\n", sources)
	for _, a := range actsOf(d.exit) {
		if err := d.perform(ctx, a); err != nil {
			return err
		}
	}
	if err := d.draw(); err != nil || d.exit {
		return err
	}
	d.suggest()
	return d.follow(ctx, nil)
}

// begin prepares the cluster and starts the controller.
func (d *demo) begin(forever context.Context) error {
	ctx, cancel := d.limited(forever)
	defer cancel()
	var err error
	if d.log.You, err = d.quietly(ctx, "auth", "whoami", "-o=jsonpath={.status.userInfo.username}"); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"apply", "-f", crdPath},
		{"apply", "-k", permissionsPath},
		{"wait", "--for=condition=Established", "-f", crdPath},
	} {
		if err := d.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	if err := d.startController(ctx); err != nil {
		return err
	}
	d.startPage(ctx)
	return nil
}

// stop stops the page, if there is one, and the controller.
func (d *demo) stop() {
	if d.page != nil {
		d.page.Stop(stopGrace)
	}
	if d.controller != nil {
		d.controller.Stop(stopGrace)
	}
}

// limited returns a context with the timeout of a step.
func (d *demo) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, stepTimeout, fmt.Errorf("not done within %v", stepTimeout))
}

// startController starts the controller as its own service account.
func (d *demo) startController(ctx context.Context) error {
	// devcluster created both directories, and removes them with the cluster.
	kubeconfig := filepath.Join(d.dataDir, "config", sampleController+".kubeconfig")
	log := filepath.Join(d.dataDir, "logs", sampleController+".log")
	config, err := testcluster.LoadConfig(d.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	account := testcluster.ServiceAccount
	if err := testcluster.WriteTokenKubeconfig(ctx, client, d.kubeconfig, kubeconfig, account, account); err != nil {
		return err
	}
	// The page learns from the Lease that the controller is running.
	flags := []string{"-v=2", "-leader-elect", "-leader-elect-resource-namespace=" + account, "-kubeconfig=" + kubeconfig}
	fmt.Fprintf(d.out, "$ %s %s\n  log: %s\n", controllerPath, strings.Join(flags, " "), log)
	// Without a context, because Ctrl-C cancels everything else at once, and the controller must
	// stop last.
	d.controller, err = testcluster.StartProgram(sampleController, log, exec.Command(controllerPath, flags...))
	return err
}

// kubectl prints a command as a user would type it, and runs it. It shows kubectl's
// output only if the command fails.
func (d *demo) kubectl(ctx context.Context, args ...string) error {
	fmt.Fprintln(d.out, "$ kubectl "+strings.Join(args, " "))
	_, err := d.quietly(ctx, args...)
	return err
}

// quietly runs kubectl without printing the command, and returns its output.
func (d *demo) quietly(ctx context.Context, args ...string) (string, error) {
	out, err := testcluster.Kubectl(ctx, devclusterPath, d.kubeconfig, args...)
	if ctx.Err() != nil {
		err = fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), context.Cause(ctx))
	}
	return out, err
}

// startPage starts a page that shows Foos live, and prints its address, unless the demo ends by
// itself. The demo continues without the plugin or its page.
func (d *demo) startPage(ctx context.Context) {
	if _, err := os.Stat(pluginPath); err != nil || d.exit {
		return
	}
	var output testcluster.Log
	// Without a context, like the controller, so that it stops in order.
	command := exec.Command(pluginPath, "ui", "--all-namespaces", "--kubeconfig", d.kubeconfig, "--audit", d.audit.Path, "--you", d.log.You)
	command.Stdout, command.Stderr = &output, &output
	page, err := testcluster.StartProcess(command)
	if err == nil {
		d.page = page
		err = output.Await(ctx, page, "http://", 1)
	}
	if err != nil {
		fmt.Fprintf(d.out, "Could not start the page: %v\n%s\n", err, output.String())
		return
	}
	fmt.Fprintf(d.out, "\nTo follow the Foo live in a browser, open:\n  %s\n\n", strings.TrimSpace(output.String()))
}

// draw draws the timeline of the audit log so far, and prints where it is.
func (d *demo) draw() error {
	drawn, err := d.log.Of(plan.Foos(""), "", "")
	if err != nil {
		return fmt.Errorf("drawing %s: %w", d.picture, err)
	}
	if err := os.MkdirAll(filepath.Dir(d.picture), 0o755); err != nil {
		return err
	}
	file, err := os.Create(d.picture)
	if err != nil {
		return err
	}
	if err := errors.Join(drawn.WriteSVG(file), file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nTo see this as a picture, open in a browser: %s\n", d.picture)
	return nil
}

// The files that the demo needs, relative to the root of the checkout.
const (
	devclusterPath = "bin/devcluster"
	// pluginPath is the kubectl plugin, which may be missing.
	pluginPath      = "bin/kubectl-foo"
	controllerPath  = "bin/sample-controller"
	crdPath         = "artifacts/crd"
	permissionsPath = "artifacts/deploy/permissions"
	examplePath     = "artifacts/examples/example-foo.yaml"
	// exampleFoo is the name of the Foo in examplePath.
	exampleFoo = "example-foo"
	// sampleController is the controller's name in the names of files.
	sampleController = "sample-controller"
)

// act is a user's act that the demo performs.
type act struct {
	// command are arguments of kubectl, and until arguments of kubectl wait, which returns at the
	// end of the act.
	command, until []string
	// collects makes the demo wait until the garbage collector watches Foos.
	collects bool
}

// actsOf returns the acts of a demo: only the first, unless the demo ends by itself.
func actsOf(exit bool) []act {
	acts := []act{
		{
			command: []string{"apply", "-f", examplePath},
			until:   []string{"foo/" + exampleFoo, "--for=condition=Ready"},
		}, {
			command: []string{"scale", "foo", exampleFoo, "--replicas=3"},
			until:   []string{"foo/" + exampleFoo, "--for=jsonpath={.status.availableReplicas}=3"},
		}, {
			command:  []string{"delete", "foo", exampleFoo},
			until:    []string{"pod", "--selector=controller=" + exampleFoo, "--for=delete"},
			collects: true,
		},
	}
	if exit {
		return acts
	}
	return acts[:1]
}

// perform performs an act, and prints writes until its end.
func (d *demo) perform(forever context.Context, a act) error {
	fmt.Fprintln(d.out)
	if a.collects {
		if err := d.awaitCollector(forever); err != nil {
			return err
		}
	}
	ctx, cancel := d.limited(forever)
	defer cancel()
	if err := d.kubectl(ctx, a.command...); err != nil {
		return err
	}
	reached := make(chan error, 1)
	go func() {
		_, err := d.quietly(ctx, append([]string{"wait", "--timeout=" + stepTimeout.String()}, a.until...)...)
		reached <- err
	}()
	if err := d.follow(ctx, reached); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nThe last write came %d ms after yours.\n", d.lasted.Milliseconds())
	return nil
}

// foosAreWatched matches the API server's metric of the watches of Foos if there are two or more.
var foosAreWatched = regexp.MustCompile(`(?m)^apiserver_longrunning_requests\{.*resource="foos",scope="cluster".*verb="WATCH".*\} ([2-9]|\d\d+)$`)

// awaitCollector waits until the garbage collector watches Foos, as the controller does. It
// discovers new kinds every 30 s. If a Foo is deleted before that, it deletes the dependents
// only much later.
func (d *demo) awaitCollector(forever context.Context) error {
	ctx, cancel := d.limited(forever)
	defer cancel()
	fmt.Fprintln(d.out, "Waiting for the garbage collector to discover Foos: it looks for new kinds every 30 s.")
	return wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		metrics, err := d.quietly(ctx, "get", "--raw=/metrics")
		return foosAreWatched.MatchString(metrics), err
	})
}
