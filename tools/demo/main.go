// SPDX-License-Identifier: Apache-2.0

// Command demo shows how a Foo becomes a Pod. It starts a development cluster
// (bin/devcluster), runs the controller in it (bin/sample-controller), applies the
// example Foo, and prints each change that follows: when, by whom, and what. With -exit
// it then scales the Foo and deletes it. At the end it draws the audit log. make demo
// runs it in the root of the checkout.
//
// It reads the API server's audit log, which contains the bodies of requests and
// responses, and prints the entries that tools/internal/timeline makes of them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"example.com/sample-controller/internal/plan"
)

// options are the command's flags.
type options struct {
	exit    bool
	picture string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// inClusterCommand is the first argument of the program in a cluster; the second is the
// data folder.
const inClusterCommand = "in-cluster"

// run runs the program as the user starts it, or as devcluster starts it in the cluster.
func run(args []string) error {
	dataDir, given := "", args
	if len(args) > 1 && args[0] == inClusterCommand {
		dataDir, given = args[1], args[2:]
	}
	var opts options
	flags := flag.NewFlagSet("demo", flag.ExitOnError) // before a cluster starts
	flags.BoolVar(&opts.exit, "exit", false, "Also scale and delete the Foo, then exit instead of running until Ctrl-C.")
	flags.StringVar(&opts.picture, "picture", "_output/timeline.svg", "The `file` for the picture of the timeline, as SVG.")
	_ = flags.Parse(given) // It exits at an error.
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: this command takes flags only", flags.Arg(0))
	case dataDir != "":
		return runInCluster(&opts, dataDir)
	}
	return becomeCluster(args)
}

const caption = `A Foo becomes a Pod on a Kubernetes control plane of your own: etcd, kube-apiserver,
kube-controller-manager and kube-scheduler are the real ones. KWOK plays the kubelet of its
node: Pods become Ready, but no image is pulled and nothing is executed.

`

// becomeCluster replaces this process with devcluster, which starts a cluster, runs this
// program in it, and ends both together: if either exits, for whatever reason, no process
// is left and the data is removed.
func becomeCluster(args []string) error {
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
	err = errors.Join(err, os.Remove(dataDir))
	return fmt.Errorf("running %s: %w: run make demo in the root of the checkout", devcluster, err)
}

// clusterCommand returns the command line that runs this program in a cluster, with the
// same flags. The audit log has the bodies of writes to Foos, to what they own, and to what
// Deployments own.
func clusterCommand(devcluster, self, dataDir string, args []string) []string {
	bodies := []string{"replicasets.apps", "pods"}
	for _, kind := range plan.Kinds("") {
		bodies = append(bodies, kind.Resource.GroupResource().String())
		for _, child := range kind.Children {
			bodies = append(bodies, child.Resource.GroupResource().String())
		}
	}
	cluster := []string{devcluster, "run", "-data-dir", dataDir, "-audit-bodies", strings.Join(bodies, ",")}
	return slices.Concat(cluster, []string{"--", self, inClusterCommand, dataDir}, args)
}
