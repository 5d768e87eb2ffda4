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

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/reporting"
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

func TestMetricsOfAController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithDeploymentName("taken")), footest.Deployment("c", footest.Named("taken")))
		f.expectMetrics(t, "writes before the first", `sample_controller_writes_total{resource="deployments",verb="create"} 0`)
		defer f.start(2)()
		advance(time.Second)
		f.expectMetrics(t, "writes",
			`sample_controller_writes_total{resource="deployments",verb="create"} 1`,
			`sample_controller_writes_total{resource="deployments",verb="update"} 0`,
			`sample_controller_writes_total{resource="deployments",verb="delete"} 0`,
			`sample_controller_writes_total{resource="foos/status",verb="update"} 2`)

		a := f.cachedFoo(t, "a").DeepCopy()
		a.Spec.Replicas = new(int32(7))
		f.updateFoo(t, a)
		advance(time.Second)
		f.expectMetrics(t, "writes of a change", `sample_controller_writes_total{resource="deployments",verb="update"} 1`)

		a = f.cachedFoo(t, "a").DeepCopy()
		a.Spec.DeploymentName = "renamed"
		f.updateFoo(t, a)
		advance(time.Second)
		f.expectMetrics(t, "writes of a rename",
			`sample_controller_writes_total{resource="deployments",verb="create"} 2`,
			`sample_controller_writes_total{resource="deployments",verb="delete"} 1`)
	})
}

func TestRefusedWritesAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.refuse("create", "deployments", apierrors.NewForbidden(footest.DeploymentsResource.GroupResource(), "web", errors.New("no")))
		f.refuse("update", "foos", errors.New("no"))
		defer f.start(1)()
		advance(0)
		f.expectMetrics(t, "refused writes",
			`sample_controller_writes_total{resource="deployments",verb="create"} 0`,
			`sample_controller_writes_total{resource="foos/status",verb="update"} 0`,
			`sample_controller_sync_duration_seconds_count{result="error"} 1`,
			`sample_controller_sync_duration_seconds_count{result="success"} 0`)
	})
}

func TestTheTimeOfASyncIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.kubeClient.PrependReactor("create", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			<-time.After(3 * time.Second)
			return false, nil, nil
		})
		defer f.start(1)()
		advance(4 * time.Second)
		f.expectMetrics(t, "duration", `sample_controller_sync_duration_seconds_sum{result="success"} 3`)
	})
}

func TestSyncResult(t *testing.T) {
	conflict := apierrors.NewConflict(footest.DeploymentsResource.GroupResource(), "web", errors.New("changed"))
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
		f := newFixture(t, footest.Foo("very-own-name", footest.WithDeploymentName("its-deployment")), footest.Foo("other"))
		f.metrics.CountByReady("foos", f.countByReady)
		defer f.start(2)()
		advance(time.Second)
		series := map[string]bool{}
		for _, line := range scraped(t, f.metrics) {
			for _, name := range []string{"very-own-name", "its-deployment", `"` + footest.Namespace + `"`} {
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

// rollOut sets the Deployment's status: the numbers of Pods and of available ones, of the
// wanted two.
func (f *fixture) rollOut(t *testing.T, replicas, available int32) {
	t.Helper()
	made := f.deployment(t, "web").DeepCopy()
	made.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: available}
	f.updateDeployment(t, made)
	advance(0)
}

func TestProgressOfARolloutIsWrittenPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(0)
		f.expectWrites(t, "create deployments", "update foos/status")

		f.rollOut(t, 1, 0)
		advance(time.Second)
		f.rollOut(t, 2, 0)
		advance(time.Second)
		f.rollOut(t, 2, 1)
		f.expectWrites(t)
		advance(reporting.ThrottleInterval - 2*time.Second - 1)
		f.expectWrites(t)
		advance(1)
		_, status := f.written(t)
		if status == nil || status.Replicas != 2 || status.AvailableReplicas != 1 {
			t.Errorf("the status is %+v", status)
		}
		f.expectWrites(t, "update foos/status")

		f.rollOut(t, 2, 0)
		f.expectWrites(t)
		advance(reporting.ThrottleInterval)
		f.expectWrites(t, "update foos/status")
		advance(time.Hour)
		f.expectWrites(t)
	})
}

func TestReadinessAndANewSpecAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(0)
		f.expectWrites(t, "create deployments", "update foos/status")

		f.rollOut(t, 2, 1)
		advance(time.Second)
		f.rollOut(t, 2, 2)
		f.expectWrites(t, "update foos/status")
		// The status that was deferred before then is no longer needed.
		advance(time.Hour)
		f.expectWrites(t)

		scaled := f.cachedFoo(t, "a").DeepCopy()
		scaled.Generation, scaled.Spec.Replicas = 2, new(int32(3))
		f.updateFoo(t, scaled)
		advance(0)
		f.expectWrites(t, "update deployments", "update foos/status")
	})
}

func TestProgressThatWasRevertedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(0)
		f.rollOut(t, 1, 0)
		f.rollOut(t, 0, 0)
		if f.statusThrottle.Len() > 0 {
			t.Error("a deferred status is still remembered although it was reverted")
		}
		f.rollOut(t, 1, 0)
		f.deleteFoo(t, "a")
		advance(0)
		if f.statusThrottle.Len() > 0 {
			t.Error("the deferred status of a deleted Foo is still remembered")
		}
	})
}
