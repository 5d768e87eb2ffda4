// SPDX-License-Identifier: Apache-2.0

// Directives that start a cluster or interrupt a block.

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// upTimeout is how long a cluster may take to start.
const upTimeout = 3 * time.Minute

// before interrupts a background block and starts a cluster, as far as the options ask
// for it.
func (r *runner) before(ctx context.Context, options beforeOptions) error {
	if options.interrupt {
		if err := r.interrupt(options.victim); err != nil {
			return err
		}
	}
	if options.cluster {
		return r.startCluster(ctx)
	}
	return nil
}

// interrupt ends a background block like Ctrl-C.
func (r *runner) interrupt(id string) error {
	for _, b := range slices.Backward(r.background) {
		if b.job.stopped || id != "" && b.step.run.id != id {
			continue
		}
		if b.job.ended() {
			return r.failure(b, fmt.Errorf("should still be running, but has exited with code %d", b.job.exitCode()))
		}
		if err := b.job.interrupt(); err != nil {
			return r.failure(b, err)
		}
		return nil
	}
	return fmt.Errorf("nothing to interrupt: no block %q is in the background", id)
}

// startCluster starts a cluster for the rest of the document. It stops the cluster that
// the document has, if any.
func (r *runner) startCluster(ctx context.Context) error {
	if r.cluster != nil {
		if err := r.cluster.interrupt(); err != nil {
			return err
		}
	}
	kubeconfig, data := filepath.Join(r.sandbox.home, ".kube", "config"), filepath.Join(r.sandbox.home, "devcluster")
	b := &block{step: step{
		run:  runOptions{terminal: "cluster", background: true, until: "export KUBECONFIG=", timeout: upTimeout},
		text: fmt.Sprintf("mkdir -p %q\nexec bin/devcluster up -data-dir=%q -kubeconfig=%q\n", filepath.Dir(kubeconfig), data, kubeconfig),
	}}
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	job, err := r.shell.begin("cluster", b.step.text, true)
	if err != nil {
		return err
	}
	b.job, r.cluster = job, job
	if err := r.waitUntil(ctx, b); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if err := r.shell.export("AUDIT_LOG", filepath.Join(data, "audit.log")); err != nil {
		return err
	}
	return r.shell.export("KUBECONFIG", kubeconfig)
}
