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

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/test/testcluster"
	"example.com/sample-controller/tools/internal/timeline"
)

// stopGrace is the time that the controller has to stop by itself.
const stopGrace = 5 * time.Second

// sources describes the columns.
const sources = `All of this is from the API server's audit log: the ms since your last change, who sent
the request, and what it wrote.`

// demo is one run in a cluster.
type demo struct {
	*options

	out io.Writer
	// colour is true if out is a terminal that shows colours.
	colour bool
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
		colour:     showsColour(os.Stdout),
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
	review, err := d.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
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
	return context.WithTimeoutCause(ctx, d.timeout, fmt.Errorf("not done within %v (-timeout)", d.timeout))
}

// startController starts the controller as its own service account.
func (d *demo) startController(ctx context.Context) error {
	// devcluster created both folders, and removes them with the cluster.
	kubeconfig := filepath.Join(d.dataDir, "config", sampleController+".kubeconfig")
	log := filepath.Join(d.dataDir, "logs", sampleController+".log")
	err := testcluster.WriteTokenKubeconfig(ctx, d.client, d.kubeconfig, kubeconfig, testcluster.ServiceAccount, testcluster.ServiceAccount)
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
	if d.picture == "" {
		return nil
	}
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
	fmt.Fprintf(d.out, "\nThe same as a picture, for a browser: %s\n", quote(d.picture))
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
)

// picturePath is the default of -picture.
const picturePath = "_output/timeline.svg"

// inClusterCommand is the first argument of the program in a cluster; the second is the
// data folder.
const inClusterCommand = "in-cluster"

const caption = `A Foo becomes a Pod on a Kubernetes control plane of your own: etcd, kube-apiserver,
kube-controller-manager and kube-scheduler are the real ones. KWOK plays the kubelet of its
node: Pods become Ready, but no image is pulled and nothing is executed.

`

// becomeCluster replaces this process with devcluster, which starts a cluster, runs this
// program in it, and ends both together: if either exits, for whatever reason, no process
// is left and the data is removed.
func becomeCluster(args []string) error {
	if err := checkCheckout(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the path of this program: %w", err)
	}
	devcluster, err := filepath.Abs(devclusterPath)
	if err != nil {
		return err
	}
	dataDir, err := os.MkdirTemp("", "foo-demo-")
	if err != nil {
		return err
	}
	fmt.Print(caption)
	err = syscall.Exec(devcluster, clusterCommand(devcluster, self, dataDir, args), os.Environ())
	return fmt.Errorf("running %s: %w", devcluster, errors.Join(err, os.Remove(dataDir)))
}

// clusterCommand returns the command line that runs this program in a cluster, with the
// same flags. The audit log has the bodies of writes to Foos, to what they own, and to what
// Deployments own.
func clusterCommand(devcluster, self, dataDir string, args []string) []string {
	bodies := "replicasets.apps,pods"
	for _, kind := range plan.Kinds("") {
		bodies += "," + kind.Resource.GroupResource().String()
		for _, child := range kind.Children {
			bodies += "," + child.Resource.GroupResource().String()
		}
	}
	command := []string{devcluster, "run", "-data-dir", dataDir, "-audit-bodies", bodies, "--", self, inClusterCommand, dataDir}
	return append(command, args...)
}

func checkCheckout() error {
	for _, path := range []string{devclusterPath, controllerPath, crdPath, permissionsPath, examplePath} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w: run make demo in the root of the checkout", err)
		}
	}
	return nil
}

// pluginPath is the kubectl plugin. It is optional: without it, the demo has no page.
const pluginPath = "bin/kubectl-foo"

// startPage starts a page that shows Foos live, and prints its address, unless the demo
// ends by itself. Without a page the demo goes on.
func (d *demo) startPage(ctx context.Context) {
	if _, err := os.Stat(pluginPath); err != nil || d.exit {
		return
	}
	address, err := d.serve(ctx, exec.Command(pluginPath, d.pageFlags()...))
	if err != nil {
		fmt.Fprintf(d.out, "No page: %v\n", err)
		return
	}
	fmt.Fprintf(d.out, "\n%s\n  %s\n\n", d.paint(green, "To see it live in a browser, why and with which writes, open:"), address)
}

// pageFlags are those of the plugin.
func (d *demo) pageFlags() []string {
	return []string{"ui", "--all-namespaces", "--kubeconfig", d.kubeconfig, "--audit", d.audit.Path, "--you", d.log.You}
}

// serve starts a program that prints the address of a page, and returns the address.
func (d *demo) serve(ctx context.Context, command *exec.Cmd) (string, error) {
	var output testcluster.Log
	command.Stdout, command.Stderr = &output, &output
	page, err := testcluster.StartProcess(command)
	if err != nil {
		return "", err
	}
	d.page = page
	if err := output.Await(ctx, page, "http://", 1); err != nil {
		d.stopPage()
		return "", fmt.Errorf("%w\n%s", err, output.String())
	}
	return strings.TrimSpace(output.Lines("http://")[0]), nil
}

// stopPage stops the page, if there is one.
func (d *demo) stopPage() {
	if d.page != nil {
		d.page.Stop(2 * time.Second)
	}
}
