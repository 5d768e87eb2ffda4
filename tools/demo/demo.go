// SPDX-License-Identifier: Apache-2.0

// One run of the demo: the cluster, the controller, the acts, and the page at the end.

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

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

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
	page   *testcluster.Process
	audit  audit.Log
	log    timeline.Log
	client kubernetes.Interface

	// latest is when the log grew last, and unprinted is true if nothing was printed since.
	latest    time.Time
	unprinted bool
	// printed are the numbers of the writes that have been printed. The last one belongs to
	// panel, and came so long after its beginning.
	printed sets.Set[int]
	panel   int
	lasted  time.Duration
}

// runInCluster runs the demo in a cluster that devcluster has started for it, until a
// signal or, with -exit, the end of the last act.
func runInCluster(opts *options, dataDir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	d := &demo{
		options:    opts,
		out:        os.Stdout,
		kubeconfig: os.Getenv(clientcmd.RecommendedConfigPathEnvVar),
		dataDir:    dataDir,
		audit:      audit.Log{Path: filepath.Join(dataDir, "audit.log")},
		printed:    sets.New[int](),
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
	if err := d.draw(); err != nil && len(d.printed) > 0 {
		fmt.Fprintf(d.out, "\nNo picture: %v\n", err)
	}
	fmt.Fprintln(d.out, "\nStopping the controller and the cluster")
	return nil
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
	config, err := testcluster.LoadConfig(d.kubeconfig)
	if err != nil {
		return err
	}
	if d.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	reviews := d.client.AuthenticationV1().SelfSubjectReviews()
	review, err := reviews.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking the cluster who we are: %w", err)
	}
	d.log.You = review.Status.UserInfo.Username
	fmt.Fprintln(d.out)
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

// limited returns a context with the timeout of a step.
func (d *demo) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, stepTimeout, fmt.Errorf("not done within %v", stepTimeout))
}

// startController starts the controller as its own service account.
func (d *demo) startController(ctx context.Context) error {
	// devcluster created both folders, and removes them with the cluster.
	kubeconfig := filepath.Join(d.dataDir, "config", sampleController+".kubeconfig")
	log := filepath.Join(d.dataDir, "logs", sampleController+".log")
	account := testcluster.ServiceAccount
	err := testcluster.WriteTokenKubeconfig(ctx, d.client, d.kubeconfig, kubeconfig, account, account)
	if err != nil {
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
	return d.quietly(ctx, args...)
}

// quietly is kubectl without the command.
func (d *demo) quietly(ctx context.Context, args ...string) error {
	_, err := testcluster.Kubectl(ctx, devclusterPath, d.kubeconfig, args...)
	if ctx.Err() != nil {
		return fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), context.Cause(ctx))
	}
	return err
}

// draw draws the writes of Foos in the audit log so far, and prints where the picture is.
func (d *demo) draw() error {
	drawn, err := d.log.Of("", "")
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
	devclusterPath  = "bin/devcluster"
	controllerPath  = "bin/sample-controller"
	crdPath         = "artifacts/crd"
	permissionsPath = "artifacts/deploy/permissions"
	examplePath     = "artifacts/examples/example-foo.yaml"
	// exampleFoo is the name of the Foo in examplePath.
	exampleFoo = "example-foo"
	// sampleController is the controller's name in the names of files.
	sampleController = "sample-controller"
)
