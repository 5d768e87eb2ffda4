// SPDX-License-Identifier: Apache-2.0

// Command demo shows how a Foo becomes a Pod. It runs the controller (bin/sample-controller) in
// the development cluster of KUBECONFIG, applies the example Foo, and prints each write that
// follows: when, by whom, and what. With -exit, it then scales the Foo and deletes it. At the
// end it draws a timeline. make demo runs it in the root of the checkout, in a new cluster.
//
// The writes come from the API server's audit log, which contains the bodies of requests and
// responses, through tools/internal/timeline.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
)

// options are the command's flags.
type options struct {
	exit    bool
	picture string
}

const caption = `Watch a Foo become a Pod on your own Kubernetes control plane, with the real etcd,
kube-apiserver, kube-controller-manager and kube-scheduler. KWOK acts as the node's kubelet:
Pods become Ready, but no image is pulled and no container runs.

`

func main() {
	var opts options
	flag.BoolVar(&opts.exit, "exit", false, "Also scale and delete the Foo, and then exit instead of running until Ctrl-C.")
	flag.StringVar(&opts.picture, "picture", "_output/timeline.svg", "The `file` to write the timeline to, as SVG.")
	flag.Parse()
	if err := runInCluster(&opts, os.Getenv(clientcmd.RecommendedConfigPathEnvVar)); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// runInCluster runs the demo in a development cluster, whose kubeconfig is in its data directory,
// until a signal arrives or, with -exit, the last act ends.
func runInCluster(opts *options, kubeconfig string) error {
	dataDir := filepath.Dir(kubeconfig)
	log := filepath.Join(dataDir, "audit.log")
	if _, err := os.Stat(log); err != nil || flag.NArg() > 0 {
		return errors.New("this command takes only flags, and needs a development cluster: run make demo in the root of the checkout")
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
		fmt.Fprintf(d.out, "\nCould not draw the timeline: %v\n", err)
	}
	fmt.Fprintln(d.out, "\nStopping the controller and the cluster")
	return nil
}

const (
	// readPeriod is how often the demo reads the audit log.
	readPeriod = 100 * time.Millisecond
	// settleTime is the time without a new write after which writes are printed. The API
	// server logs a write after its response, so an effect may be logged before its cause.
	settleTime = 400 * time.Millisecond
)

// follow prints writes until reached delivers a value and the log has settled, ctx is done, or the
// controller exits.
func (d *demo) follow(ctx context.Context, reached <-chan error) error {
	ticker := time.NewTicker(readPeriod)
	defer ticker.Stop()
	ends := false
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.controller.Ended():
			return d.controller.Err()
		case err := <-reached:
			if err != nil {
				return err
			}
			ends, reached = true, nil
			d.latest = time.Now() // the API server may log the last write a moment later
		case now := <-ticker.C:
			settled, err := d.tell(now)
			if err != nil || ends && settled {
				return err
			}
		}
	}
}

// tell reads the audit log, and prints new writes if the log has settled.
func (d *demo) tell(now time.Time) (settled bool, err error) {
	writes, err := d.audit.Next()
	if err != nil {
		return false, fmt.Errorf("reading the audit log: %w", err)
	}
	for _, write := range writes {
		d.log.Add(write)
		if !write.IsBackground() {
			d.latest, d.unprinted = now, true
		}
	}
	if now.Sub(d.latest) < settleTime {
		return false, nil
	}
	if !d.unprinted {
		return true, nil
	}
	d.unprinted = false
	all, err := d.log.Of(plan.Foos(""), "", "")
	if err != nil {
		return true, nil //nolint:nilerr // there is no write to a Foo yet
	}
	for _, panel := range all.Panels {
		for _, e := range panel.Entries {
			if !d.printed.Has(e.Number) {
				d.printed.Insert(e.Number)
				d.print(e)
			}
		}
	}
	return true, nil
}

func (d *demo) print(e *timeline.Entry) {
	if e.Panel != d.panel {
		fmt.Fprintf(d.out, "\n%6s %-21s  %-7s %s\n", "ms", "who", "", "what")
	}
	d.panel, d.lasted = e.Panel, e.Since
	line := fmt.Sprintf("%6d %-21s  %-7s %-46s %s", e.Since.Milliseconds(), e.Actor, e.Verb, e.Object, e.Result)
	fmt.Fprintln(d.out, strings.TrimRight(line, " "))
}

// suggest prints commands to try in a second terminal.
func (d *demo) suggest() {
	root, _ := os.Getwd() // on an error, the paths stay relative
	fmt.Fprintf(d.out, suggestions, d.kubeconfig, filepath.Join(root, devclusterPath), filepath.Join(root, examplePath))
}

const suggestions = `
This terminal also prints further changes, with the ms since your last one. Try these in a second terminal:

  export KUBECONFIG=%q
  kubectl() { %q kubectl "$@"; }

  kubectl get foo,deployment,replicaset,pod
  kubectl scale foo example-foo --replicas=3
  kubectl delete pod -l controller=example-foo        # the ReplicaSet replaces them
  kubectl scale deployment example-foo --replicas=5   # drift: the controller undoes it
  kubectl edit foo example-foo
  kubectl delete foo example-foo                      # also deletes what it owns
  kubectl apply -f %q

Ctrl-C here stops the controller and the cluster, and removes their data.
`
