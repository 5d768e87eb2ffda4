// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a Kubernetes control plane. Each component is a process of this
// program.
//
// Start locks the data directory, reserves ports and creates certificates. It starts etcd,
// then kube-apiserver, then kube-controller-manager, kube-scheduler and KWOK together,
// each when what it needs is ready. Stop stops them in the reverse order.
package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/devcluster/internal/supervise"
)

// stopGrace is how long each group of components may take to exit.
const stopGrace = 5 * time.Second

// Cluster is a control plane that is starting or running.
type Cluster struct {
	options  Options
	progress io.Writer
	began    time.Time

	data  *dataDir
	ports ports
	holds portHolds
	group *supervise.Group

	admin  *clientcmdapi.Config
	client kubernetes.Interface
}

// Start starts a cluster and waits until it is ready: the API server answers, Pods can be
// created in the namespace default and are scheduled, and the nodes are Ready. It writes
// its progress line by line.
//
// The returned context is done when ctx is, or when a component exits unexpectedly; the
// cause is then a *supervise.Failure. After an error, everything that was started has
// been stopped: gracefully, or at once when kill is done.
func Start(ctx, kill context.Context, options Options, progress io.Writer) (*Cluster, context.Context, error) {
	c := &Cluster{options: options, progress: progress, began: time.Now()}
	if err := c.prepare(); err != nil {
		return nil, nil, errors.Join(err, c.abandon())
	}
	group, running, err := supervise.NewGroup(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, c.abandon())
	}
	c.group = group
	if err := c.startAll(running); err != nil {
		failure := err
		if ctx.Err() != nil {
			failure = nil // the start was canceled
		}
		return nil, nil, errors.Join(err, c.Stop(kill, failure))
	}
	return c, running, nil
}

// prepare does everything that needs no processes.
func (c *Cluster) prepare() (err error) {
	if c.data, err = openDataDir(c.options.DataDir); err != nil {
		return err
	}
	if c.ports, c.holds, err = holdPorts(); err != nil {
		return err
	}
	ca, err := prepareFiles(c.data.layout, c.ports, c.options.AuditBodies)
	if err != nil {
		return err
	}
	if c.admin, err = kubeconfig(ca, httpsURL(c.ports.api), adminUser, adminGroup); err != nil {
		return err
	}
	config, err := clientcmd.NewDefaultClientConfig(*c.admin, nil).ClientConfig()
	if err != nil {
		return err
	}
	config.QPS = -1 // the supervisor's few calls should not wait for each other
	c.client, err = kubernetes.NewForConfig(config)
	return err
}

func (c *Cluster) startAll(ctx context.Context) error {
	used := c.data.used()
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.start(APIServer, c.emulating(apiServerArgs(c.data.layout, c.ports))); err != nil {
		return err
	}
	if err := c.await(ctx, APIServer, health(c.client.Discovery().RESTClient(), "/readyz")); err != nil {
		return err
	}
	if used {
		if err := deleteLeases(ctx, c.client); err != nil {
			return err
		}
	}
	// The three start in parallel: each takes about a second, mostly waiting.
	rest, ctx := errgroup.WithContext(ctx)
	for component, run := range map[string]func(context.Context) error{
		ControllerManager: c.startControllerManager,
		Scheduler:         c.startScheduler,
		Kwok:              c.startNodes,
	} {
		if c.options.runs(component) {
			rest.Go(func() error { return run(ctx) })
		}
	}
	if err := rest.Wait(); err != nil {
		return err
	}
	return writeKubeconfig(c.Kubeconfig(), c.admin)
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	if err := c.start(Etcd, etcdArgs(c.data.layout, c.ports, c.options.Keep)); err != nil {
		return err
	}
	l := c.data.layout
	files := rest.TLSClientConfig{CAFile: l.cert(etcdCA), CertFile: l.cert(etcdClient), KeyFile: l.key(etcdClient)}
	ready, err := healthAt(c.ports.etcd, "/readyz", files)
	if err != nil {
		return err
	}
	return c.await(ctx, Etcd, ready)
}

func (c *Cluster) startControllerManager(ctx context.Context) error {
	args := controllerManagerArgs(c.data.layout, c.ports)
	return c.startLeader(ctx, ControllerManager, args, c.ports.controllerManager, "/healthz", podsAreAdmitted(c.client))
}

func (c *Cluster) startScheduler(ctx context.Context) error {
	args := schedulerArgs(c.data.layout, c.ports)
	return c.startLeader(ctx, Scheduler, args, c.ports.scheduler, "/readyz")
}

// startLeader starts a component that serves its health at a path and is elected.
func (c *Cluster) startLeader(
	ctx context.Context, component string, args []string, port int, path string, further ...func(context.Context) error,
) error {
	if err := c.start(component, c.emulating(args)); err != nil {
		return err
	}
	healthy, err := healthAt(port, path, rest.TLSClientConfig{CAFile: c.data.cert(clusterCA)})
	if err != nil {
		return err
	}
	checks := append([]func(context.Context) error{healthy, leads(c.client, component)}, further...)
	return c.await(ctx, component, checks...)
}

func (c *Cluster) startNodes(ctx context.Context) error {
	if err := grantKwok(ctx, c.client); err != nil {
		return err
	}
	if err := c.start(Kwok, kwokArgs(c.data.layout)); err != nil {
		return err
	}
	if err := createNodes(ctx, c.client, c.options.Nodes); err != nil {
		return err
	}
	return c.await(ctx, Kwok, nodesReady(c.client, c.options.Nodes, c.options.runs(ControllerManager)))
}

// emulating adds the version to emulate to the arguments of a component. If one of the three lacks
// it, kube-scheduler and kube-controller-manager keep listing kinds that the API server does not
// serve, and kube-scheduler never becomes ready.
func (c *Cluster) emulating(args []string) []string {
	if c.options.EmulatedVersion != "" {
		args = append(args, "--emulated-version="+c.options.EmulatedVersion)
	}
	return args
}

func (c *Cluster) start(component string, args []string) error {
	if c.options.Verbose {
		fmt.Fprintln(c.progress, commandLine(component, args))
	}
	env := componentEnv(c.data.layout, component)
	return c.group.Start(component, append([]string{component}, args...), env, c.data.log(component))
}

// await waits until each of the checks of a component has succeeded.
func (c *Cluster) await(ctx context.Context, component string, checks ...func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	for _, check := range checks {
		if err := poll(ctx, check); err != nil {
			return &supervise.Failure{Err: fmt.Errorf("%s: %w", component, err), Log: c.data.log(component)}
		}
	}
	c.report(component)
	return nil
}

func (c *Cluster) report(component string) {
	what := component
	switch {
	case component == Kwok:
		what = fmt.Sprintf("kwok (nodes: %d)", c.options.Nodes)
	case component == APIServer && c.options.EmulatedVersion != "":
		what = fmt.Sprintf("kube-apiserver (as %s)", c.options.EmulatedVersion)
	}
	fmt.Fprintf(c.progress, "%-24s ready %5.1fs\n", what, time.Since(c.began).Seconds())
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.data.adminKubeconfig() }

// Server returns the URL of the API server.
func (c *Cluster) Server() string { return httpsURL(c.ports.api) }

// DataDir returns the path of the data directory.
func (c *Cluster) DataDir() string { return c.data.dir() }

// Group returns the process group of the components.
func (c *Cluster) Group() *supervise.Group { return c.group }

// Stop stops all components: gracefully, or at once when ctx is done. It removes the data
// unless it is to be kept. If failure is not nil, the cluster failed for that reason, and
// the logs stay.
func (c *Cluster) Stop(ctx context.Context, failure error) error {
	c.group.Stop(ctx, stopGrace, []string{Kwok, Scheduler, ControllerManager}, []string{APIServer}, []string{Etcd})
	c.holds.release()
	defer c.data.release()
	if c.options.Keep || (failure != nil && !c.data.fresh) {
		return nil
	}
	return c.data.remove(failure != nil)
}

// abandon undoes prepare. It leaves what was in the data directory before.
func (c *Cluster) abandon() error {
	c.holds.release()
	if c.data == nil {
		return nil
	}
	defer c.data.release()
	if !c.data.fresh {
		return nil
	}
	return c.data.remove(false)
}

// maxNodes is the number of nodes that Kubernetes is tested with.
const maxNodes = 5000

// optional returns the components that -without may leave out.
func optional() []string { return []string{ControllerManager, Scheduler, Kwok} }

// Options are the options of a cluster.
type Options struct {
	// DataDir is the data directory; "" means a new temporary directory.
	DataDir string
	// Keep leaves the data when the cluster stops.
	Keep bool
	// Nodes is the number of nodes.
	Nodes int
	// Without names components that are not started.
	Without []string
	// AuditBodies names the resources whose bodies the audit log contains, such as
	// deployments.apps.
	AuditBodies []string
	// EmulatedVersion is the minor version of Kubernetes that the components emulate,
	// such as 1.35; "" means their own.
	EmulatedVersion string
	// Verbose prints each component's command line.
	Verbose bool
}

// AddFlags defines the flags.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", "",
		"`directory` for the cluster's data, created if missing (default a new temporary directory)")
	fs.BoolVar(&o.Keep, "keep", false,
		"keep the data when the cluster stops; a later start with the same -data-dir has the same objects")
	fs.IntVar(&o.Nodes, "nodes", 1, "`number` of nodes")
	fs.Func("without", "comma-separated `components` not to start, of "+strings.Join(optional(), ", "),
		listInto(&o.Without))
	fs.Func("audit-bodies", "comma-separated `resources`, such as deployments.apps,pods, "+
		"whose request and response bodies audit.log contains", listInto(&o.AuditBodies))
	fs.StringVar(&o.EmulatedVersion, "emulated-version", "", "minor `version` of Kubernetes that the API server, "+
		"the controller manager and the scheduler emulate, one of "+
		strings.Join(EmulatedVersions(), ", ")+" (default their own, the last)")
	fs.BoolVar(&o.Verbose, "v", false, "print the command line of each component")
}

// listInto returns a function that parses a comma-separated list into names.
func listInto(names *[]string) func(list string) error {
	return func(list string) error {
		*names = nil
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" {
				*names = append(*names, name)
			}
		}
		return nil
	}
}

// Validate returns an error of one line for invalid options.
func (o *Options) Validate() error {
	if o.Nodes < 0 || o.Nodes > maxNodes {
		return fmt.Errorf("-nodes %d: must be from 0 to %d", o.Nodes, maxNodes)
	}
	for _, name := range o.Without {
		if !slices.Contains(optional(), name) {
			return fmt.Errorf("-without %s: unknown component, or one that is always needed; choose from %s",
				name, strings.Join(optional(), ", "))
		}
	}
	for _, name := range o.AuditBodies {
		if strings.ContainsAny(name, "/ ") {
			return fmt.Errorf("-audit-bodies %s: must be RESOURCE or RESOURCE.GROUP; subresources are included", name)
		}
	}
	return checkEmulatedVersion(o.EmulatedVersion)
}

// runs reports whether a component is to be started.
func (o *Options) runs(component string) bool { return !slices.Contains(o.Without, component) }
