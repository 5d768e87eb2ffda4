// SPDX-License-Identifier: Apache-2.0

// Budgets: how many requests the controller may make.

package measure

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/test/bench/internal/cluster"
	"example.com/sample-controller/test/bench/internal/results"
)

const (
	budgetFoos, budgetSettled = 60, 20
	// restTime is how long there must be no request. It spans several resyncs, and is
	// longer than the controller may postpone a status.
	restTime   = 8 * time.Second
	resync     = "-resync=1s"
	testLimits = 3 * time.Minute
)

// budgets measures one controller.
type budgets struct {
	*session
	subject Program
	running *process
	counter *cluster.Counter
}

// TestBudgets counts the controller's requests to an API server that nobody else uses.
// Unlike times, counts are the same on any machine.
func TestBudgets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testLimits)
	defer cancel()
	bench, ours := underTest(ctx, t)
	err := bench.in(ctx, false, func(s *session) error {
		b := &budgets{session: s, subject: ours.With("ours", resync)}
		var err error
		if b.counter, err = s.Count(ctx); err != nil {
			return err
		}
		_ = t.Run("new Foos", b.newFoos) && t.Run("rest", b.rest) && t.Run("restart", b.restart)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// underTest builds the controller.
func underTest(ctx context.Context, t *testing.T) (*Bench, Program) {
	t.Helper()
	devcluster := os.Getenv("DEVCLUSTER_BIN")
	if devcluster == "" {
		t.Skip("DEVCLUSTER_BIN is not set to the path of bin/devcluster: make budgets sets it")
	}
	repository, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ours")
	if err := BuildOurs(ctx, repository, path); err != nil {
		t.Fatal(err)
	}
	return &Bench{Devcluster: devcluster, Repository: repository}, Ours(path)
}

// newFoos checks that for each new Foo one Deployment is created, one status is written
// and at most one Event, and nothing else.
func (b *budgets) newFoos(t *testing.T) {
	ctx := t.Context()
	foos, err := waitingFoos(ctx, b.Cluster, budgetFoos)
	if err != nil {
		t.Fatal(err)
	}
	if b.running, _, err = b.converge(ctx, b.subject, convergeTimeout, foos...); err != nil {
		t.Fatal(err)
	}
	for foo, writes := range writesByFoo(b.untilQuiet(t)) {
		if n := writes["create deployments"]; n != 1 {
			t.Errorf("%s: %d requests to create a Deployment, want 1", foo, n)
		}
		if n := writes["update foos/status"]; n != 1 {
			t.Errorf("%s: %d requests to write the status, want 1", foo, n)
		}
		if n := writes["create events"]; n > 1 {
			t.Errorf("%s: %d requests to create an Event, want at most 1", foo, n)
		}
		delete(writes, "create deployments")
		delete(writes, "update foos/status")
		delete(writes, "create events")
		if len(writes) > 0 {
			t.Errorf("%s: further writes: %v", foo, writes)
		}
	}
}

// untilQuiet returns all writes, after the last one.
func (b *budgets) untilQuiet(t *testing.T) []audit.Write {
	t.Helper()
	var all []audit.Write
	err := wait.PollUntilContextTimeout(t.Context(), 2*time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		counts, err := b.counter.Next(ctx)
		all = append(all, counts.Writes...)
		return err == nil && len(all) > 0 && len(counts.Writes) == 0, err
	})
	if err != nil {
		t.Fatalf("waiting until the writes end: %v; %d writes for %d Foos so far", err, len(all), budgetFoos)
	}
	return all
}

// writesByFoo counts the writes for each Foo, including Foos without any. A Deployment
// has the name of its Foo, and the name of an Event starts with it.
func writesByFoo(writes []audit.Write) map[string]map[string]int {
	by := map[string]map[string]int{}
	for i := range budgetFoos {
		by[nameOf(i)] = map[string]int{}
	}
	for _, write := range writes {
		foo, _, _ := strings.Cut(write.Name, ".")
		if by[foo] == nil {
			by[foo] = map[string]int{}
		}
		by[foo][write.Verb+" "+write.Path()]++
	}
	return by
}

// rest checks that a resync of Foos that need no change causes no request at all.
func (b *budgets) rest(t *testing.T) {
	resting, err := b.beginRest(t.Context(), b.running)
	if err != nil {
		t.Fatal(err)
	}
	found, err := resting.end(t.Context(), restTime)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Calls) > 0 {
		t.Errorf("requests within %v without a change: %v, want none", restTime, found.Calls)
	}
}

// restart checks that a restart writes nothing if all Foos have converged, or were created
// as settled for the measurements of memory.
func (b *budgets) restart(t *testing.T) {
	b.running.stop()
	if err := settledFoos(t.Context(), b.Cluster, budgetFoos, budgetSettled); err != nil {
		t.Fatal(err)
	}
	found, err := b.beside(t.Context(), b.subject, budgetFoos+budgetSettled, whileWaiting(restTime))
	if err != nil {
		t.Fatal(err)
	}
	if found.Calls.Writes() > 0 {
		t.Errorf("requests after a restart: %v, want no writes", found.Calls)
	}
}

// TestStarts measures the controller beside a few settled Foos: it becomes ready and idle, and
// makes no request at rest.
func TestStarts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testLimits)
	defer cancel()
	bench, ours := underTest(ctx, t)
	var start results.Run
	options := Options{Limit: time.Minute, Idle: time.Minute, Rest: 2 * time.Second}
	err := bench.Starts(ctx, []Program{ours}, []int{200}, false, options, func(_ string, found results.Run) { start = found })
	if err != nil {
		t.Fatal(err)
	}
	if start.Seconds == 0 || start.IdleSeconds < start.Seconds || start.CPUIdle == 0 || start.PeakMiB == 0 {
		t.Errorf("the start is incomplete: %+v", start)
	}
	if len(start.Rest.Calls) > 0 {
		t.Errorf("requests at rest: %v", start.Rest.Calls)
	}
}
