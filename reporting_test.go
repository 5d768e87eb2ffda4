/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Tests of what a controller reports of its work: metrics, and the statuses of a rollout,
// which may wait.

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/metrics"
)

// scraped returns the lines with values of a scrape.
func scraped(t *testing.T, from *metrics.Metrics) []string {
	t.Helper()
	answer := httptest.NewRecorder()
	from.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if answer.Code != http.StatusOK {
		t.Fatalf("The scrape was answered with %d: %s", answer.Code, answer.Body)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(answer.Body.String()), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "#")
	})
}

// ours returns the lines of this controller's own metrics.
func ours(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		return !strings.HasPrefix(line, "sample_controller_") || strings.Contains(line, "_bucket{")
	})
}

// expectMetrics checks that a scrape contains these lines.
func (f *fixture) expectMetrics(t *testing.T, what string, want ...string) {
	t.Helper()
	lines := scraped(t, f.metrics)
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("The metrics of the %s lack\n%s\nand have\n%s", what, line, strings.Join(ours(lines), "\n"))
		}
	}
}

// countOf is the metric that counts a write, such as createChild.
func countOf(write string, count int) string {
	verb, resource, _ := strings.Cut(write, " ")
	return fmt.Sprintf(`sample_controller_writes_total{resource=%q,verb=%q} %d`, resource, verb, count)
}

func TestMetricsOfAController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithChildName("taken")), footest.Child("c", footest.Named("taken")))
		f.expectMetrics(t, "writes before the first", countOf(createChild, 0))
		defer f.start(2)()
		advance(time.Second)
		f.expectMetrics(t, "writes",
			countOf(createChild, 1),
			countOf(updateChild, 0),
			countOf(deleteChild, 0),
			`sample_controller_writes_total{resource="foos/status",verb="update"} 2`)

		f.drift(t, "web")
		advance(time.Second)
		f.expectMetrics(t, "writes of a change", countOf(updateChild, 1))

		a := f.cachedFoo(t, "a").DeepCopy()
		footest.WithChildName("renamed")(a)
		f.updateFoo(t, a)
		advance(time.Second)
		f.expectMetrics(t, "writes of a rename",
			countOf(createChild, 2),
			countOf(deleteChild, 1))
	})
}

func TestRefusedWritesAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.refuse("create", children, apierrors.NewForbidden(footest.ChildGR, "web", errors.New("no")))
		f.refuse("update", "foos", errors.New("no"))
		defer f.start(1)()
		advance(0)
		f.expectMetrics(t, "refused writes",
			countOf(createChild, 0),
			`sample_controller_writes_total{resource="foos/status",verb="update"} 0`,
			`sample_controller_sync_duration_seconds_count{result="error"} 1`,
			`sample_controller_sync_duration_seconds_count{result="success"} 0`)
	})
}

func TestTheTimeOfASyncIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.kubeClient.PrependReactor("create", children, func(clienttesting.Action) (bool, runtime.Object, error) {
			<-time.After(3 * time.Second)
			return false, nil, nil
		})
		defer f.start(1)()
		advance(4 * time.Second)
		f.expectMetrics(t, "duration", `sample_controller_sync_duration_seconds_sum{result="success"} 3`)
	})
}

func TestSyncResult(t *testing.T) {
	conflict := apierrors.NewConflict(footest.ChildGR, "web", errors.New("changed"))
	for want, errs := range map[metrics.Result][]error{
		metrics.Success: {nil},
		metrics.Retry:   {consistency.ErrStale, conflict, fmt.Errorf("updating: %w", conflict), context.Canceled},
		metrics.Error:   {errors.New("refused"), context.DeadlineExceeded, apierrors.NewInternalError(errors.New("etcd"))},
		metrics.Panic:   {fmt.Errorf("%w: nil map", errPanic)},
	} {
		for _, err := range errs {
			if got := syncResult(err); got != want {
				t.Errorf("A sync that ends with %v is a %s, want %s", err, got, want)
			}
		}
	}
}

// The number of series does not depend on the number of Foos.
func TestSeriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("very-own-name", footest.WithChildName("its-child")), footest.Foo("other"))
		f.metrics.CountByReady("foos", f.CountByReady)
		defer f.start(2)()
		advance(time.Second)
		series := map[string]bool{}
		for _, line := range scraped(t, f.metrics) {
			for _, name := range []string{"very-own-name", "its-child", `"` + footest.Namespace + `"`} {
				if strings.Contains(line, name) {
					t.Errorf("A series contains the name of an object: %s", line)
				}
			}
			name, _, _ := strings.Cut(line, " ")
			if strings.HasPrefix(name, "sample_controller_") && !strings.Contains(name, "_bucket{") {
				series[name] = true
			}
		}
		want := map[string]bool{
			`sample_controller_foos{ready="False"}`:                                true,
			`sample_controller_foos{ready="True"}`:                                 true,
			`sample_controller_foos{ready="Unknown"}`:                              true,
			`sample_controller_stale_syncs_total`:                                  true,
			`sample_controller_sync_panics_total`:                                  true,
			`sample_controller_sync_duration_seconds_count{result="error"}`:        true,
			`sample_controller_sync_duration_seconds_count{result="panic"}`:        true,
			`sample_controller_sync_duration_seconds_count{result="retry"}`:        true,
			`sample_controller_sync_duration_seconds_count{result="success"}`:      true,
			`sample_controller_sync_duration_seconds_sum{result="error"}`:          true,
			`sample_controller_sync_duration_seconds_sum{result="panic"}`:          true,
			`sample_controller_sync_duration_seconds_sum{result="retry"}`:          true,
			`sample_controller_sync_duration_seconds_sum{result="success"}`:        true,
			`sample_controller_writes_total{resource="foos/status",verb="update"}`: true,
		}
		for _, kind := range footest.Kinds {
			for _, verb := range []string{"create", "update", "delete"} {
				want[fmt.Sprintf(`sample_controller_writes_total{resource=%q,verb=%q}`, kind.Resource.Resource, verb)] = true
			}
		}
		footest.ExpectEqual(t, "the set of our series", want, series)
	})
}
