// SPDX-License-Identifier: Apache-2.0

// A trial: one run in a namespace of its own, with one fault or none.

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/conform/judge"
	"example.com/sample-controller/test/faults/proxy"
)

const (
	namespacePrefix = "conform-"
	quotaName       = "conform"
	pollPeriod      = 50 * time.Millisecond
	// shortQuiet is how long nothing may be written before a further step begins; longQuiet
	// before the end.
	shortQuiet = time.Second
	longQuiet  = 3 * time.Second
	// deletionWait is how long nothing must change until an object that is being deleted counts as
	// part of the end: its finalizers may be nobody's.
	deletionWait = 30 * time.Second
	// startWait bounds the wait for the program's start.
	startWait = time.Minute
	// slowPath is how much longer an end may take after faults that client-go itself notices
	// only after a while: dead connections, Leases that expire.
	slowPath = time.Minute
)

// step is one thing that users do, or other writers.
type step struct {
	name string
	act  func(ctx context.Context, tr *trial, done *judge.Step) error
}

// trial is a run in progress.
type trial struct {
	*runner
	ns       string
	began    time.Time
	replicas []*replica
	run      *judge.Run
	// faulted is when the fault ended, as far as it has an end.
	faulted time.Time
	// applied are the objects that exist because conform applied them.
	applied []*unstructured.Unstructured
	// ctx ends with the run of conform.
	ctx context.Context //nolint:containedctx // the steps and faults of a trial share it
}

// try runs a case, and returns what was recorded and the program's log.
func (r *runner) try(ctx context.Context, c judge.Case) (run *judge.Run, log string) {
	tr := &trial{runner: r, ctx: ctx, run: &judge.Run{Case: c, Reached: c.Write == nil}}
	err := tr.prepare()
	if err == nil {
		err = tr.play()
	}
	if err != nil {
		tr.run.Problem = err.Error()
	} else if !tr.run.Reached {
		tr.run.Problem = "this run did not make the write that was to fail"
	}
	tr.close()
	for _, p := range tr.replicas {
		log += p.log.String()
	}
	return tr.run, log
}

func (tr *trial) prepare() error {
	created, err := tr.plane.Kube.CoreV1().Namespaces().Create(tr.ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	tr.ns, tr.began = created.Name, created.CreationTimestamp.Time
	tr.recorder.forget(tr.ns)
	tr.run.Options = judge.Options{Namespace: tr.ns, Ignore: tr.settings.ignore, Ready: tr.settings.Ready}
	number, args := 1, tr.args
	if tr.run.Case.Level == judge.Replicas {
		number = 2
		if tr.run.Case.Fault != "two-at-once" {
			args = slices.Concat(args, tr.settings.LeaderElection)
		}
	}
	for i := range number {
		replica, err := tr.newReplica(tr.ns, tr.folder, i, args)
		if err != nil {
			return err
		}
		tr.replicas = append(tr.replicas, replica)
	}
	return nil
}

// newReplica names the kubeconfig after the namespace, because all are in one folder.
func (tr *trial) newReplica(namespace, folder string, number int, args []string) (*replica, error) {
	folder = filepath.Join(folder, namespace)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	return tr.runner.newReplica(namespace, folder, number, args)
}

// play starts the program, and does the steps up to the one with the fault.
func (tr *trial) play() error {
	c := tr.run.Case
	for _, p := range tr.replicas {
		if err := p.start(); err != nil {
			return err
		}
	}
	if err := tr.awaitStart(); err != nil {
		return err
	}
	last := len(tr.steps) - 1
	if c.Step != judge.EachStep {
		last = c.Step
	}
	inject := injections()[c.Fault]
	if inject == nil {
		return fmt.Errorf("there is no fault %q", c.Fault)
	}
	if c.Step == judge.EachStep {
		return inject(tr, func() error { return tr.playSteps(0, last) })
	}
	if err := tr.playSteps(0, last-1); err != nil {
		return err
	}
	if err := inject(tr, func() error { return tr.act(last) }); err != nil {
		return err
	}
	tr.faulted = time.Now()
	if err := tr.settle(last, longQuiet); err != nil {
		return err
	}
	return tr.after()
}

// awaitStart waits until a program watches something and makes no further requests, so that the first
// fault meets one that runs. One that watches nothing, or goes on, has had its time then.
func (tr *trial) awaitStart() error {
	runs := func(context.Context) (bool, error) {
		calls := slices.DeleteFunc(tr.calls(), func(call *proxy.Call) bool { return call.Resource == "leases" })
		isOpen := func(call *proxy.Call) bool { return call.IsWatch() && call.Code == http.StatusOK }
		return slices.ContainsFunc(calls, isOpen) && time.Since(calls[len(calls)-1].Began) > shortQuiet, nil
	}
	err := wait.PollUntilContextTimeout(tr.ctx, pollPeriod, startWait, true, runs)
	if tr.ctx.Err() == nil {
		return nil
	}
	return err
}

func (tr *trial) playSteps(from, to int) error {
	for i := from; i <= to; i++ {
		if err := tr.act(i); err != nil {
			return err
		}
		if tr.run.Case.Fault == judge.Touching {
			if err := tr.touchTwice(); err != nil {
				return err
			}
		}
		quiet := shortQuiet
		if i == len(tr.steps)-1 {
			quiet = longQuiet
		}
		if err := tr.settle(i, quiet); err != nil {
			return err
		}
	}
	return nil
}

func (tr *trial) act(i int) error {
	history, _ := tr.recorder.history(tr.ns)
	done := judge.Step{Name: tr.steps[i].name, Began: time.Now(), From: len(history), Generations: map[string]int64{}}
	tr.run.Steps = append(tr.run.Steps, done)
	if err := tr.steps[i].act(tr.ctx, tr, &tr.run.Steps[i]); err != nil {
		return fmt.Errorf("step %s: %w", done.Name, err)
	}
	return nil
}

// calls returns the requests of all replicas in order.
func (tr *trial) calls() []*proxy.Call {
	var calls []*proxy.Call
	for _, p := range tr.replicas {
		calls = append(calls, p.proxy.Calls()...)
	}
	slices.SortStableFunc(calls, func(a, b *proxy.Call) int { return a.Began.Compare(b.Began) })
	return calls
}

// quietSince returns when the controller wrote last, or was started, or met the fault.
func (tr *trial) quietSince() time.Time {
	since := tr.faulted
	later := func(t time.Time) {
		if t.After(since) {
			since = t
		}
	}
	for _, call := range tr.calls() {
		if judge.IsWork(call) {
			later(call.Began)
		}
	}
	for _, p := range tr.replicas {
		_, started := p.endings()
		later(started)
	}
	return since
}

// end normalizes what exists now.
func (tr *trial) end() judge.End {
	history, _ := tr.recorder.history(tr.ns)
	options := tr.run.Options
	options.Statuses = tr.statuses
	return judge.EndOf(judge.Latest(history), options)
}

// settle waits until what exists is as in the runs without a fault, and nothing is written.
// In a run that is recorded, it waits until nothing changes.
func (tr *trial) settle(i int, quiet time.Duration) error {
	limit := tr.settings.Timeout.Duration
	if tr.isSlow() {
		limit += slowPath
	}
	settled := func(context.Context) (bool, error) { return tr.isSettled(i, quiet), nil }
	err := wait.PollUntilContextTimeout(tr.ctx, pollPeriod, limit, true, settled)
	if tr.ctx.Err() == nil {
		return nil // what is not as wanted, the judge says
	}
	return err
}

// isSettled notes what exists, and whether nothing was written for a while, and reports whether
// the step has come to its end.
func (tr *trial) isSettled(i int, quiet time.Duration) bool {
	_, changed := tr.recorder.history(tr.ns)
	since := tr.quietSince()
	step := &tr.run.Steps[i]
	step.End, step.Quiet = tr.end(), min(time.Since(since), time.Since(step.Began)) > quiet
	if tr.record == nil {
		step.Quiet = min(time.Since(since), time.Since(changed), time.Since(step.Began)) > tr.settings.Settle.Duration
		// The deletion of a Namespace, for example, pauses for seconds.
		return step.Quiet && (!step.End.IsDeleting() || time.Since(changed) > deletionWait)
	}
	return step.Quiet && len(tr.record.Mask(tr.run.Case, i).Diff(tr.record.Ends[i], step.End)) == 0
}

func (tr *trial) isSlow() bool {
	c := tr.run.Case
	return c.Fault == "dead-connections" || c.Level == judge.Replicas || c.Alone
}

// after waits as long as a case about silence wants it.
func (tr *trial) after() error {
	c, from := tr.run.Case, time.Now()
	if c.Level != judge.Quiet {
		return nil
	}
	why, howLong := "at rest", tr.settings.Rest.Duration
	switch c.Fault {
	case "relist":
		why, howLong = "after its watches ended, although nothing had changed", 2*tr.settings.Settle.Duration
		end := tr.replicas[0].proxy.Use(isResumed, proxy.Refuse(http.StatusGone))
		tr.replicas[0].proxy.EndWatches("")
		defer end()
	case "restart":
		why, howLong = "after a restart, although nothing had changed", 2*tr.settings.Settle.Duration
		tr.replicas[0].kill(false)
	}
	err := tr.pause(howLong)
	tr.run.Silent = append(tr.run.Silent, judge.Window{From: from, To: time.Now(), Why: why})
	return err
}

// close ends the program and completes the record of the run.
func (tr *trial) close() {
	for _, p := range tr.replicas {
		p.close()
		exits, _ := p.endings()
		tr.run.Exits = append(tr.run.Exits, exits...)
	}
	tr.run.Calls = tr.calls()
	tr.run.History, _ = tr.recorder.history(tr.ns)
	ctx, cancel := context.WithTimeout(context.Background(), stepWait+slowPath)
	defer cancel()
	if tr.clusterWide {
		if err := tr.clear(ctx); err != nil && tr.run.Problem == "" {
			tr.run.Problem = err.Error()
		}
	}
	tr.recorder.forget(tr.ns)
	tr.run.Options.Statuses = tr.statuses
	_ = tr.plane.Kube.CoreV1().Namespaces().Delete(ctx, tr.ns, metav1.DeleteOptions{}) // the control plane ends with the run
}

func (tr *trial) pause(howLong time.Duration) error {
	select {
	case <-time.After(howLong):
		return nil
	case <-tr.ctx.Done():
		return tr.ctx.Err()
	}
}
