// SPDX-License-Identifier: Apache-2.0

// A trial: one controller or more in a namespace, each behind a proxy. Like the functions of
// a test, its methods return nothing if they succeed, and end the trial if they fail.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/oracle"
	"example.com/sample-controller/test/testcluster"
)

const (
	// waitTimeout bounds each wait of a row for something that must happen. It is no measure of
	// speed: the machine may be slow.
	waitTimeout = 90 * time.Second
	// backoffTimeout is enough for a write that is repeated after a back-off, which grows to
	// 5 minutes.
	backoffTimeout = 4 * waitTimeout
	// rolloutTimeout bounds how much longer the cluster's own controllers may take to
	// roll out a Deployment that is already as requested.
	rolloutTimeout = 10 * time.Minute
)

// trial is a namespace with the controllers under test, usually one.
type trial struct {
	t       *testing.T
	ctx     context.Context
	subject *subject
	cluster *testCluster
	// account is what the controllers connect as.
	account *account
	// plane is set for a row that breaks the control plane.
	plane *controlPlane
	ns    string
	// everywhere is true if the controllers work in all namespaces, and not only in ns. It
	// needs its own control plane.
	everywhere bool
	// http2 is true if the controllers use HTTP/2, whose pings find dead connections.
	http2 bool
	// timeout bounds each wait.
	timeout time.Duration
	// replicas are the controllers, each behind its own proxy.
	replicas []*replica
	// phase says what is going on, for the message of a failure.
	phase string
	// outcome is the error that ended the trial of a row, and nil in other tests, which end themselves. The
	// neighbors of the trial share it.
	outcome *error
	// expected is what the oracle takes into account.
	expected expected
	// recording has the statuses of the Foos. falsehoods are the false statuses of recordings
	// that have ended, and the errors of recording.
	recording  *oracle.Recording
	falsehoods []error
	// applied are the files with the policies and webhooks of the trial. changedCRD is true
	// if it has patched the CRD.
	applied    []string
	changedCRD bool
}

// newTrial creates a namespace, which is deleted when the test ends. Until then, the statuses of its Foos
// are recorded.
func newTrial(t *testing.T) *trial {
	t.Helper()
	return newTrialIn(t, run.cluster, func(*trial) {})
}

// newTrial is that of a row.
func (sc *scenario) newTrial(t *testing.T, c *testCluster, s *subject) *trial {
	t.Helper()
	return newTrialIn(t, c, func(tr *trial) {
		tr.subject, tr.timeout, tr.outcome = s, waitTimeout, new(error)
		if sc.exempt || s.isUpstream {
			tr.account = c.exempt
		}
	})
}

func newTrialIn(t *testing.T, c *testCluster, set func(*trial)) *trial {
	t.Helper()
	ns, err := c.createNamespace(t.Context())
	footest.Must(t, err)
	tr := inNamespaceOf(t, c, ns)
	set(tr)
	footest.Must(t, tr.startRecording())
	return tr
}

// inNamespaceOf returns a trial in a namespace that exists, without a recording.
func inNamespaceOf(t *testing.T, c *testCluster, ns string) *trial {
	t.Helper()
	tr := &trial{
		t: t, ctx: t.Context(), subject: run.ours, cluster: c, ns: ns, account: c.account, timeout: patience, expected: newExpected(),
	}
	t.Cleanup(tr.close)
	return tr
}

// in returns the trial for a subtest.
func (tr *trial) in(t *testing.T) *trial {
	t.Helper()
	part := *tr
	part.t, part.ctx, part.replicas = t, t.Context(), slices.Clone(tr.replicas)
	return &part
}

// close deletes what the trial has created. A failed test shows it first.
func (tr *trial) close() {
	var cancel context.CancelFunc
	tr.ctx, cancel = context.WithTimeout(run.ctx, waitTimeout)
	defer cancel()
	if tr.outcome == nil {
		tr.endRecording()
		for _, falsehood := range tr.falsehoods {
			tr.t.Error(falsehood)
		}
		if tr.t.Failed() {
			content, err := tr.cluster.runKubectl(tr.ctx, "get", "events,"+allResources(), "--namespace="+tr.ns, "-o=yaml")
			tr.t.Logf("Objects in %s (%v):\n%s", tr.ns, err, content)
		}
	}
	for _, file := range tr.applied {
		_, _ = tr.cluster.runKubectl(tr.ctx, "delete", "-f", file) // they apply to the trial's namespace only
	}
	if tr.changedCRD {
		_ = tr.cluster.install(tr.ctx) // the row has done so, unless it failed
	}
	// The end of the run waits until the namespace is gone.
	_ = tr.cluster.kube.CoreV1().Namespaces().Delete(tr.ctx, tr.ns, metav1.DeleteOptions{})
}

// errNotReached says that a run made fewer writes than the one without faults, so that
// there was nothing to break.
var errNotReached = errors.New("the write that was to fail was not made")

// run acts, and then asks the oracle. It returns the first failure, and the false statuses.
func (tr *trial) run(acts func(*trial)) error {
	var acting sync.WaitGroup
	acting.Go(func() { // must ends its goroutine
		acts(tr)
		tr.stableAndQuiet()
	})
	acting.Wait()
	tr.endRecording()
	found := errors.Join(tr.falsehoods...)
	if found != nil && errors.Is(*tr.outcome, errNotReached) {
		return found
	}
	return errors.Join(*tr.outcome, found)
}

// must ends the trial if err is not nil, as T.Fatal ends a test: only the goroutine of run
// may call it, or another method that can fail.
func (tr *trial) must(err error) {
	tr.t.Helper()
	if err == nil {
		return
	}
	if tr.phase != "" {
		err = fmt.Errorf("%s: %w", tr.phase, err)
	}
	if tr.outcome == nil {
		tr.t.Fatal(err)
	}
	*tr.outcome = err
	runtime.Goexit()
}

func (tr *trial) failf(format string, args ...any) {
	tr.t.Helper()
	tr.must(fmt.Errorf(format, args...))
}

// diagnostics returns the requests and the end of the logs of all controllers.
func (tr *trial) diagnostics() string {
	var text strings.Builder
	for _, r := range tr.replicas {
		text.WriteString(r.diagnostics())
	}
	return text.String()
}

// errNotRolledOut says that a Deployment is as requested, but the cluster has not created
// all its Pods yet.
var errNotRolledOut = errors.New("not rolled out")

// wait calls check until it returns nil. If only the rollout by the cluster takes long,
// as on a busy machine, it waits rolloutTimeout longer, because the controller is not at
// fault.
func (tr *trial) wait(what string, check func(context.Context) error) error {
	err := testcluster.Await(tr.ctx, tr.timeout, what, check)
	if tr.ctx.Err() == nil && errors.Is(err, errNotRolledOut) {
		err = testcluster.Await(tr.ctx, rolloutTimeout, what, check)
	}
	return err
}

func (tr *trial) await(what string, check func(context.Context) error) {
	tr.t.Helper()
	tr.must(tr.wait(what, check))
}

// startRecording begins to record every status of the Foos in the trial's namespace: the
// second oracle. It watches the API server directly, not through the proxy. Only subjects
// that report conditions have a recording.
func (tr *trial) startRecording() (err error) {
	if !tr.subject.isUpstream {
		tr.recording, err = oracle.Record(run.ctx, tr.api())
	}
	return err
}

// endRecording ends the recording and keeps the false statuses in it. A gap in the
// recording is an error, because a false status may have been missed.
func (tr *trial) endRecording() {
	if tr.recording == nil {
		return
	}
	ctx, cancel := context.WithTimeout(run.ctx, waitTimeout)
	defer cancel()
	sentences, err := tr.recording.Lies(ctx)
	if err != nil {
		tr.falsehoods = append(tr.falsehoods, fmt.Errorf("the record of the statuses is incomplete: %w", err))
	}
	for _, sentence := range sentences {
		tr.falsehoods = append(tr.falsehoods, errors.New(sentence))
	}
	tr.recording.Stop()
	tr.recording = nil
}

// withoutRecording runs do, which ends all watches, between two recordings. What was
// recorded before is checked first.
func (tr *trial) withoutRecording(do func()) {
	tr.endRecording()
	do()
	tr.must(tr.startRecording())
}

// mustServe fails if a Foo that had been ready had no Deployment with available Pods at some
// time.
func (tr *trial) mustServe() {
	if tr.subject.isUpstream {
		return
	}
	interruptions, err := tr.recording.Interruptions(tr.ctx, func(child footest.Object) bool {
		d, ok := child.(*appsv1.Deployment)
		return ok && d.Status.AvailableReplicas > 0
	})
	tr.must(err)
	if len(interruptions) > 0 {
		tr.failf("%s", strings.Join(interruptions, "; "))
	}
}

// kubectl runs kubectl as the administrator in the trial's namespace, and returns its output.
func (tr *trial) kubectl(args ...string) string {
	tr.t.Helper()
	out, err := tr.cluster.runKubectl(tr.ctx, append([]string{"--namespace=" + tr.ns}, args...)...)
	tr.must(err)
	return out
}

// pause gives a controller time to do what it must not do. Use await for what it must do.
func (tr *trial) pause(howLong time.Duration) { tr.must(sleep(tr.ctx, howLong)) }

func sleep(ctx context.Context, howLong time.Duration) error {
	timer := time.NewTimer(howLong)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAwaitExtendsItsTimeoutForRolloutsOnly(t *testing.T) {
	for _, known := range []error{errors.New("it has 1 replica"), fmt.Errorf("Foo a: %w", errNotRolledOut)} {
		tr := &trial{ctx: t.Context(), timeout: 100 * time.Millisecond}
		began := time.Now()
		err := tr.wait("there is no error", func(context.Context) error {
			if time.Since(began) < 3*tr.timeout {
				return known
			}
			return nil
		})
		if waited := err == nil; waited != errors.Is(known, errNotRolledOut) {
			t.Errorf("with the error %q, wait returns %v", known, err)
		}
	}
}
