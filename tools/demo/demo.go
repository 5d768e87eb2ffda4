// SPDX-License-Identifier: Apache-2.0

// One run of the demo: the controller, the page, what it does as a user would, and the picture at the
// end.

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
	// stepTimeout is the limit of each step, and stopGrace the time that the controller has to
	// stop by itself.
	stepTimeout = 2 * time.Minute
	stopGrace   = 5 * time.Second
)

// sources describes the columns.
const sources = `All of this is from the API server's audit log: the ms since your last change, who sent
the request, and what it wrote.`

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

	// latest is when the log grew last, and unprinted is true if nothing was printed since.
	latest    time.Time
	unprinted bool
	// printed are the numbers of the writes that have been printed. The last one belongs to
	// panel, and came so long after its beginning.
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
	// devcluster created both folders, and removes them with the cluster.
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
	// By its Lease, the page knows that the controller is running.
	flags := []string{"-v=2", "-leader-elect", "-leader-elect-resource-namespace=" + account, "-kubeconfig=" + kubeconfig}
	fmt.Fprintf(d.out, "$ %s %s\n  its log is %s\n", controllerPath, strings.Join(flags, " "), log)
	// Without a context: Ctrl-C cancels everything else at once, and the controller
	// stops last.
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

// quietly is kubectl without the command. It returns kubectl's output.
func (d *demo) quietly(ctx context.Context, args ...string) (string, error) {
	out, err := testcluster.Kubectl(ctx, devclusterPath, d.kubeconfig, args...)
	if ctx.Err() != nil {
		err = fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), context.Cause(ctx))
	}
	return out, err
}

// startPage starts a page that shows Foos live, and prints its address, unless the demo
// ends by itself. Without the plugin or its page the demo goes on.
func (d *demo) startPage(ctx context.Context) {
	if _, err := os.Stat(pluginPath); err != nil || d.exit {
		return
	}
	var output testcluster.Log
	// Without a context, as the controller: Ctrl-C ends it in order.
	command := exec.Command(pluginPath, "ui", "--all-namespaces", "--kubeconfig", d.kubeconfig, "--audit", d.audit.Path, "--you", d.log.You)
	command.Stdout, command.Stderr = &output, &output
	page, err := testcluster.StartProcess(command)
	if err == nil {
		d.page = page
		err = output.Await(ctx, page, "http://", 1)
	}
	if err != nil {
		fmt.Fprintf(d.out, "No page: %v\n%s\n", err, output.String())
		return
	}
	fmt.Fprintf(d.out, "\nTo see it live in a browser, why and with which writes, open:\n  %s\n\n", strings.TrimSpace(output.String()))
}

// draw draws the writes of Foos in the audit log so far, and prints where the picture is.
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
	fmt.Fprintf(d.out, "\nThe same as a picture, for a browser: %s\n", d.picture)
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

// act is something that the demo does as a user would.
type act struct {
	// command has the arguments of kubectl, and until those of kubectl wait, which returns
	// at the end of the act.
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

// perform carries out an act, and prints what follows until its end.
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
	fmt.Fprintln(d.out, "Waiting until the garbage collector knows Foos: it looks for new kinds every 30 s.")
	return wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		metrics, err := d.quietly(ctx, "get", "--raw=/metrics")
		return foosAreWatched.MatchString(metrics), err
	})
}
