// SPDX-License-Identifier: Apache-2.0

// Budgets: how many requests the controller may make.

package measure

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/test/bench/internal/results"
)

const (
	budgetFoos = 60
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
	made    *requests
}

// TestBudgets counts the controller's requests to an API server that no one else uses.
// Unlike times, counts are the same on any machine.
func TestBudgets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testLimits)
	defer cancel()
	bench, ours := underTest(ctx, t)
	err := bench.in(ctx, false, func(s *session) error {
		b := &budgets{session: s, subject: ours.With("ours", resync)}
		_ = t.Run("new Foos", b.newFoos) && t.Run("rest", b.rest)
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
	return &Bench{Devcluster: devcluster, Repository: repository}, Program{Name: "ours", Path: path, Env: Installed}
}

// newFoos checks that for each new Foo one Deployment is created, one status is written
// and at most one Event, and nothing else.
func (b *budgets) newFoos(t *testing.T) {
	ctx := t.Context()
	foos, err := b.waitingFoos(ctx, budgetFoos)
	if err != nil {
		t.Fatal(err)
	}
	if b.running, b.made, _, err = b.converge(ctx, b.subject, convergeTimeout, foos...); err != nil {
		t.Fatal(err)
	}
	b.awaitQuiet(t)
	want := map[string]int{"create deployments": 1, "update foos/status": 1}
	for foo, writes := range writesByFoo(b.made.writes) {
		events := writes["create events"]
		delete(writes, "create events")
		if events > 1 || !maps.Equal(writes, want) {
			t.Errorf("%s: %d requests to create an Event, want at most 1; and %v, want %v", foo, events, writes, want)
		}
	}
}

// awaitQuiet waits until the writes end.
func (b *budgets) awaitQuiet(t *testing.T) {
	t.Helper()
	isQuiet := func(context.Context) (bool, error) {
		writes, err := b.made.next()
		return len(writes) == 0, err
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 2*time.Second, time.Minute, false, isQuiet); err != nil {
		t.Fatalf("waiting until the writes end: %v; %d writes for %d Foos so far", err, len(b.made.writes), budgetFoos)
	}
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
	found, err := b.atRest(t.Context(), b.running, restTime)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Calls) > 0 {
		t.Errorf("requests within %v without a change: %v, want none", restTime, found.Calls)
	}
}

// TestStarts measures the controller beside a few Foos that were created as settled: it becomes ready and
// idle, reads, writes nothing, and makes no request at rest.
func TestStarts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testLimits)
	defer cancel()
	bench, ours := underTest(ctx, t)
	var start results.Run
	options := Options{Limit: time.Minute, Idle: time.Minute, Rest: 2 * time.Second}
	err := bench.Starts(ctx, []Program{ours}, []int{200}, func(int) int { return 1 }, false, options, func(_ string, _ int, found results.Run) { start = found })
	if err != nil {
		t.Fatal(err)
	}
	if start.Seconds == 0 || start.IdleSeconds < start.Seconds || start.CPUIdle == 0 || start.PeakMiB == 0 {
		t.Errorf("the start is incomplete: %+v", start)
	}
	if start.Calls[reads] == 0 || start.Calls.Writes() > 0 || len(start.Rest.Calls) > 0 {
		t.Errorf("requests at the start: %v, want reads and no writes; and at rest: %v, want none", start.Calls, start.Rest.Calls)
	}
}
