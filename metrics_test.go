// SPDX-License-Identifier: Apache-2.0

// Tests of metrics.

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/test/footest"
)

// scraped returns what a scrape is answered with.
func (f *fixture) scraped() string {
	f.t.Helper()
	answer, request := httptest.NewRecorder(), httptest.NewRequestWithContext(f.t.Context(), http.MethodGet, "/metrics", http.NoBody)
	f.metrics.Handler().ServeHTTP(answer, request)
	footest.ExpectEqual(f.t, "the code of the answer to a scrape", http.StatusOK, answer.Code)
	return answer.Body.String()
}

// ours returns the lines of this controller's own metrics.
func (f *fixture) ours() []string {
	return slices.DeleteFunc(strings.Split(f.scraped(), "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "sample_controller_") || strings.Contains(line, "_bucket{")
	})
}

// expectMetrics checks that a scrape contains these lines.
func (f *fixture) expectMetrics(what string, want ...string) {
	f.t.Helper()
	lines := f.ours()
	for _, line := range want {
		if !slices.Contains(lines, line) {
			f.t.Errorf("The metrics of the %s lack\n%s\nand have\n%s", what, line, strings.Join(lines, "\n"))
		}
	}
}

// countOf is the metric that counts a write, such as createChild. A patch counts as an
// update.
func countOf(write string, count int) string {
	verb, resource, _ := strings.Cut(strings.Replace(write, "patch ", "update ", 1), " ")
	return fmt.Sprintf(`sample_controller_writes_total{resource=%q,verb=%q} %d`, resource, verb, count)
}

func TestMetricsOfAController(t *testing.T) {
	foos := world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("taken")), footest.Child("c", footest.Named("taken")))
	test(t, foos, func(f *fixture) {
		f.expectMetrics("writes before the first", countOf(createChild, 0))
		f.callsTake("create", 3*time.Second)
		defer f.start(1)()
		advance(4 * time.Second)
		f.expectMetrics("writes", countOf(createChild, 1), countOf(updateChild, 0), countOf(deleteChild, 0), countOf(writeStatus, 2))
		f.expectMetrics("durations", `sample_controller_sync_duration_seconds_sum{result="success"} 3`)

		f.change("web", footest.Drifted)
		advance(time.Second)
		f.expectMetrics("writes of a change", countOf(updateChild, 1))

		renamed := f.storedFoo("a")
		footest.WithChildName("renamed")(renamed)
		f.put(renamed)
		advance(4 * time.Second)
		f.expectMetrics("writes of a rename", countOf(createChild, 2), countOf(deleteChild, 1))
	})
}

func TestRefusedWritesAreCountedByCause(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.refuse("create", children, quotaExceeded)
		f.refuse("update", "foos", apierrors.NewUnauthorized("no"))
		defer f.start(1)()
		advance(0)
		f.expectMetrics("refused writes", countOf(createChild, 0), countOf(writeStatus, 0),
			`sample_controller_refusals_total{cause="quota"} 1`,
			`sample_controller_refusals_total{cause="permission"} 1`,
			`sample_controller_refusals_total{cause="policy"} 0`,
			`sample_controller_sync_duration_seconds_count{result="error"} 1`,
			`sample_controller_sync_duration_seconds_count{result="success"} 0`)
	})
}

// The number of series does not depend on the number of Foos: there are all of them from the
// start, and the names of objects are in none.
func TestSeriesAreBounded(t *testing.T) {
	test(t, world(footest.Foo("very-own-name", footest.WithChildName("its-child")), footest.Foo("other")), func(f *fixture) {
		f.metrics.CountByReady("foos", f.CountByReady)
		series := func() (series []string) {
			for _, line := range f.ours() {
				name, _, _ := strings.Cut(line, " ")
				series = append(series, name)
			}
			return series
		}
		before := series()
		defer f.start(2)()
		advance(time.Second)
		footest.ExpectEqual(t, "the list of our series", before, series())
		text := f.scraped()
		for _, name := range []string{"very-own-name", "its-child", `"` + footest.Namespace + `"`} {
			if strings.Contains(text, name) {
				t.Errorf("A series contains the name %s of an object: %s", name, text)
			}
		}
	})
}
