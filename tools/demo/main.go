// SPDX-License-Identifier: Apache-2.0

// Command demo shows how a Foo becomes a Pod. It runs the controller
// (bin/sample-controller) in the development cluster of KUBECONFIG, applies the example
// Foo, and prints each change that follows: when, by whom, and what. With -exit it then
// scales the Foo and deletes it. At the end it draws the audit log. make demo runs it in
// the root of the checkout, in a cluster of its own.
//
// It reads the API server's audit log, which contains the bodies of requests and
// responses, and prints the entries that tools/internal/timeline makes of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/test/audit"
)

// options are the command's flags.
type options struct {
	exit    bool
	picture string
}

const caption = `A Foo becomes a Pod on a Kubernetes control plane of your own: etcd, kube-apiserver,
kube-controller-manager and kube-scheduler are the real ones. KWOK plays the kubelet of its
node: Pods become Ready, but no image is pulled and nothing is executed.

`

func main() {
	var opts options
	flag.BoolVar(&opts.exit, "exit", false, "Also scale and delete the Foo, then exit instead of running until Ctrl-C.")
	flag.StringVar(&opts.picture, "picture", "_output/timeline.svg", "The `file` for the picture of the timeline, as SVG.")
	flag.Parse()
	if err := runInCluster(&opts, os.Getenv(clientcmd.RecommendedConfigPathEnvVar)); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// runInCluster runs the demo in a development cluster, whose kubeconfig is in its data
// folder, until a signal or, with -exit, the end of the last act.
func runInCluster(opts *options, kubeconfig string) error {
	dataDir := filepath.Dir(kubeconfig)
	log := filepath.Join(dataDir, "audit.log")
	if _, err := os.Stat(log); err != nil || flag.NArg() > 0 {
		return errors.New("this command takes flags only, and runs in a development cluster: run make demo in the root of the checkout")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	fmt.Print(caption)
	d := &demo{options: opts, out: os.Stdout, kubeconfig: kubeconfig, dataDir: dataDir, audit: audit.Log{Path: log}, printed: sets.New[int]()}
	err := d.run(ctx)
	d.stop()
	switch {
	case ctx.Err() == nil:
		return err
	case d.exit:
		return errors.New("stopped before the last step")
	}
	if err := d.draw(); err != nil && len(d.printed) > 0 {
		fmt.Fprintf(d.out, "\nNo picture: %v\n", err)
	}
	fmt.Fprintln(d.out, "\nStopping the controller and the cluster")
	return nil
}
