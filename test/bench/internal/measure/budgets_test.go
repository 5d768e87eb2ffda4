// SPDX-License-Identifier: Apache-2.0

// Budgets: how many requests the controller may make.

package measure

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/internal/audit"
	"example.com/sample-controller/test/bench/internal/calls"
	"example.com/sample-controller/test/bench/internal/fixtures"
	"example.com/sample-controller/test/bench/internal/process"
	"example.com/sample-controller/test/bench/internal/program"
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
	subject program.Program
	metrics string
	running *process.Process
	counter *calls.Counter
}

// TestBudgets counts the controller's requests to an API server that nobody else uses.
// Unlike times, counts are the same on any machine.
func TestBudgets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testLimits)
	defer cancel()
	bench, ours := underTest(ctx, t)
	address := freeAddress(t)
	err := bench.in(ctx, false, func(s *session) error {
		b := &budgets{session: s, metrics: address}
		b.subject = ours.With("ours", resync, "-metrics-bind-address="+address)
		var err error
		if b.counter, err = s.counter(ctx); err != nil {
			return err
		}
		defer func() {
			if b.running != nil {
				b.running.Stop()
			}
		}()
		_ = t.Run("new Foos", b.newFoos) && t.Run("rest", b.rest) && t.Run("no limiter", b.noLimiter) && t.Run("restart", b.restart)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// underTest builds the controller.
func underTest(ctx context.Context, t *testing.T) (*Bench, program.Program) {
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
	if err := program.BuildOurs(ctx, repository, path); err != nil {
		t.Fatal(err)
	}
	return &Bench{Devcluster: devcluster, Repository: repository}, program.Ours(path)
}

// newFoos checks that for each new Foo one Deployment is created, one status is written
// and at most one Event, and nothing else.
func (b *budgets) newFoos(t *testing.T) {
	ctx := t.Context()
	foos, err := fixtures.Foos(ctx, b.Cluster, 0, budgetFoos)
	if err != nil {
		t.Fatal(err)
	}
	running, _, err := b.converge(ctx, b.subject, foos)
	if err != nil {
		t.Fatal(err)
	}
	b.running = running
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
		by[fixtures.Name(i)] = map[string]int{}
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
	found, err := resting.end(t.Context(), b.running, restTime)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Calls) > 0 {
		t.Errorf("requests within %v without a change: %v, want none", restTime, found.Calls)
	}
}

// noLimiter checks that no request waited in the client's rate limiter.
func (b *budgets) noLimiter(t *testing.T) {
	text := b.scrape(t)
	requests, err := calls.Family(text, "rest_client_requests_total")
	if err != nil || len(requests.GetMetric()) == 0 {
		t.Fatalf("the controller's metrics have no rest_client_requests_total (%v)", err)
	}
	waits, err := calls.Family(text, "rest_client_rate_limiter_duration_seconds")
	if err != nil {
		t.Fatal(err)
	}
	for _, wait := range waits.GetMetric() {
		if seconds := wait.GetHistogram().GetSampleSum(); seconds > 0 {
			t.Errorf("requests waited %.6f s in the client's rate limiter: %v, want 0", seconds, wait.GetLabel())
		}
	}
}

// restart checks that a restart writes nothing if all Foos have converged.
func (b *budgets) restart(t *testing.T) {
	b.running.Stop()
	found, err := b.session.restart(t.Context(), b.subject, b.counter, TrialOptions{Foos: budgetFoos, Restart: restTime})
	if err != nil {
		t.Fatal(err)
	}
	if results.Writes(found.Calls) > 0 {
		t.Errorf("requests after a restart: %v, want no writes", found.Calls)
	}
}

func (b *budgets) scrape(t *testing.T) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+b.metrics+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+b.Contender.BearerToken)
	// The certificate is self-signed and new at each start.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the controller's metrics: %s %v\n%s", response.Status, err, text)
	}
	return text
}

// freeAddress returns an address that no process listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
