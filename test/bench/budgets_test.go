// SPDX-License-Identifier: Apache-2.0

// Budgets: how many requests the controller may make.

package main

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/test/testcluster"
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
	subject program
	running *process
	made    *requests
}

// TestBudgets counts the controller's requests to an API server that no one else uses.
// Unlike times, counts are the same on any machine.
func TestBudgets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testLimits)
	defer cancel()
	bench, subject := underTest(ctx, t)
	err := bench.in(ctx, false, func(s *session) error {
		b := &budgets{session: s, subject: subject}
		_ = t.Run("new Foos", b.newFoos) && t.Run("rest", b.rest)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// underTest builds the controller.
func underTest(ctx context.Context, t *testing.T) (bench, program) {
	t.Helper()
	devcluster := testcluster.Devcluster(t)
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), ours)
	if err := testcluster.Build(ctx, repository, path, "."); err != nil {
		t.Fatal(err)
	}
	return bench{devcluster: devcluster, repository: repository}, program{name: ours, path: path, args: []string{resync}, env: installed}
}

// newFoos checks that for each new Foo one Deployment is created, one status is written
// and at most one Event, and nothing else.
func (b *budgets) newFoos(t *testing.T) {
	ctx := t.Context()
	waiting, err := b.waitingFoos(ctx, budgetFoos, "")
	if err != nil {
		t.Fatal(err)
	}
	if b.running, b.made, _, err = b.converge(ctx, b.subject, convergeTimeout, waiting...); err != nil {
		t.Fatal(err)
	}
	b.awaitQuiet(t)
	want := map[string]int{"create deployments": 1, "update foos/status": 1}
	for foo, written := range writesByFoo(b.made.writes) {
		events := written["create events"]
		delete(written, "create events")
		if events > 1 || !maps.Equal(written, want) {
			t.Errorf("%s: %d requests to create an Event, want at most 1; and %v, want %v", foo, events, written, want)
		}
	}
}

// awaitQuiet waits until the writes end.
func (b *budgets) awaitQuiet(t *testing.T) {
	t.Helper()
	isQuiet := func(context.Context) (bool, error) {
		written, err := b.made.next()
		return len(written) == 0, err
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 2*time.Second, time.Minute, false, isQuiet); err != nil {
		t.Fatalf("waiting until the writes end: %v; %d writes for %d Foos so far", err, len(b.made.writes), budgetFoos)
	}
}

// writesByFoo counts the writes for each Foo, including Foos without any. A Deployment
// has the name of its Foo, and the name of an Event starts with it.
func writesByFoo(written []audit.Write) map[string]map[string]int {
	by := map[string]map[string]int{}
	for i := range budgetFoos {
		by[nameOf(i)] = map[string]int{}
	}
	for _, write := range written {
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
	found := figures{}
	if err := b.atRest(t.Context(), b.running, restTime, found); err != nil {
		t.Fatal(err)
	}
	if found[restCalls] > 0 {
		t.Errorf("%v requests within %v without a change, want none", found[restCalls], restTime)
	}
}

// TestStarts measures the controller beside a few Foos that were created as settled: it becomes ready and
// idle, reads, writes nothing, and makes no request at rest.
func TestStarts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testLimits)
	defer cancel()
	bench, subject := underTest(ctx, t)
	r := &runner{bench: bench, found: &results{}}
	if err := r.starts(ctx, settled, []int{200}, options{idle: time.Minute, rest: 2 * time.Second}, subject); err != nil {
		t.Fatal(err)
	}
	start := r.found.Measurements[0].Figures
	if start[last] == 0 || start[idle] < start[last] || start[cpuIdle] == 0 || start[peakMiB] == 0 {
		t.Errorf("the start is incomplete: %+v", start)
	}
	if start[writes] > 0 || start[restCalls] > 0 {
		t.Errorf("%v writes at the start, and %v requests at rest: want none", start[writes], start[restCalls])
	}
}
