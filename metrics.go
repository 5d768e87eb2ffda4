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

package main

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // work queues, requests, leader election and informers report to legacyregistry

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foolisters "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

const metricsSubsystem = "sample_controller"

// How a sync can end, as its metric says.
const (
	// syncSuccess: the Foo is as it should be, or was written so.
	syncSuccess = "success"
	// syncRetry: it is tried again, for an everyday reason: a cache is behind,
	// or a race was lost.
	syncRetry = "retry"
	// syncError: it failed, and is logged.
	syncError = "error"
	// syncPanic: it ran into a bug.
	syncPanic = "panic"
)

// errPanic is a panic in a sync, as an error.
var errPanic = errors.New("panic")

// maxScrapes bounds how many scrapes are answered at the same time.
const maxScrapes = 5

// controllerMetrics are what the controller tells of its own doings. A label
// has a few fixed values, never the name of an object.
type controllerMetrics struct {
	// syncs are the durations of syncs by how they ended.
	syncs map[string]metrics.ObserverMetric
	// staleSyncs are syncs put off because a cache had not seen our last write.
	staleSyncs metrics.CounterMetric
	// panics are syncs that panicked and were recovered.
	panics metrics.CounterMetric

	// Writes that the API server has accepted.
	deploymentsCreated, deploymentsUpdated, deploymentsDeleted, statusesUpdated metrics.CounterMetric
}

// newControllerMetrics makes the metrics and registers them (before that, they
// count nothing), next to one that tells what the program was built from.
func newControllerMetrics(registry metrics.KubeRegistry) *controllerMetrics {
	syncs := metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: metricsSubsystem,
		Name:      "sync_duration_seconds",
		Help: "Time that a look at one Foo took, its writes included, by how it ended: success; retry (an everyday reason, " +
			"such as a cache that is behind or a lost race); error (logged); panic (a bug).",
		// From a look at the caches to a few calls that take their full time.
		Buckets:        []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})
	writes := metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: metricsSubsystem,
		Name:      "writes_total",
		Help: "Writes that the API server has accepted, by verb and resource. At rest there are none. " +
			"Those that it has refused are in rest_client_requests_total.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"verb", "resource"})
	staleSyncs := metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      metricsSubsystem,
		Name:           "stale_syncs_total",
		Help:           "Syncs that were put off because a cache had not seen the controller's last write for that Foo yet.",
		StabilityLevel: metrics.ALPHA,
	})
	panics := metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      metricsSubsystem,
		Name:           "sync_panics_total",
		Help:           "Syncs that panicked and were recovered: a bug. The log has the stack.",
		StabilityLevel: metrics.ALPHA,
	})
	registry.MustRegister(syncs, writes, staleSyncs, panics)
	registry.Registerer().MustRegister(collectors.NewBuildInfoCollector())

	// All series are there from the start, at 0, so that the first of anything
	// is seen as an increase.
	m := &controllerMetrics{
		syncs:              map[string]metrics.ObserverMetric{},
		staleSyncs:         staleSyncs,
		panics:             panics,
		deploymentsCreated: writes.WithLabelValues("create", "deployments"),
		deploymentsUpdated: writes.WithLabelValues("update", "deployments"),
		deploymentsDeleted: writes.WithLabelValues("delete", "deployments"),
		statusesUpdated:    writes.WithLabelValues("update", "foos/status"),
	}
	for _, result := range []string{syncSuccess, syncRetry, syncError, syncPanic} {
		m.syncs[result] = syncs.WithLabelValues(result)
	}
	return m
}

// synced counts a sync that ended with err.
func (m *controllerMetrics) synced(err error, took time.Duration) {
	m.syncs[syncResult(err)].Observe(took.Seconds())
}

// syncResult names how a sync ended.
func syncResult(err error) string {
	switch {
	case err == nil:
		return syncSuccess
	case errors.Is(err, errPanic):
		return syncPanic
	case nextAttempt(err).expected, isPostponed(err):
		return syncRetry
	}
	return syncError
}

// fooCollector counts the Foos in the cache when it is asked for, so that a
// standby's count is right, too, and no count can go astray.
type fooCollector struct {
	metrics.BaseStableCollector

	foos foolisters.FooLister
	// filled tells whether the cache holds what the API server has.
	filled  func() bool
	byReady *metrics.Desc
}

func newFooCollector(foos foolisters.FooLister, filled func() bool) *fooCollector {
	return &fooCollector{foos: foos, filled: filled, byReady: metrics.NewDesc(
		metrics.BuildFQName("", metricsSubsystem, "foos"),
		"Foos by the status of their condition Ready. One without the condition, or with that of an older spec, counts as Unknown. Each replica counts all that it looks after.",
		[]string{"ready"}, nil, metrics.ALPHA, "")}
}

// DescribeWithStability tells what CollectWithStability will.
func (c *fooCollector) DescribeWithStability(descriptions chan<- *metrics.Desc) {
	descriptions <- c.byReady
}

// CollectWithStability counts. As long as the cache is being filled it says
// nothing, for its number would be wrong.
func (c *fooCollector) CollectWithStability(values chan<- metrics.Metric) {
	if !c.filled() {
		return
	}
	foos, err := c.foos.List(labels.Everything())
	if err != nil {
		return
	}
	for status, count := range countByReady(foos) {
		values <- metrics.NewLazyConstMetric(c.byReady, metrics.GaugeValue, float64(count), string(status))
	}
}

// countByReady counts Foos by the status of their condition Ready. What it says
// of an older spec is not known of the newest: while no status can be written, a
// Foo that was changed does not count as ready.
func countByReady(foos []*samplev1alpha1.Foo) map[metav1.ConditionStatus]int {
	counts := map[metav1.ConditionStatus]int{metav1.ConditionTrue: 0, metav1.ConditionFalse: 0, metav1.ConditionUnknown: 0}
	for _, foo := range foos {
		status := metav1.ConditionUnknown
		ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady)
		if ready != nil && ready.ObservedGeneration >= foo.Generation {
			status = ready.Status
		}
		if _, known := counts[status]; !known {
			status = metav1.ConditionUnknown
		}
		counts[status]++
	}
	return counts
}

// metricsHandler answers a scrape with the metrics in registry, those of
// client-go, and those of the Go runtime and the process.
//
// These two libraries cost 0.8 MiB of the program and 2 MiB of memory at start.
func metricsHandler(registry metrics.KubeRegistry) http.Handler {
	return metrics.HandlerFor(prometheus.Gatherers{legacyregistry.DefaultGatherer, registry},
		metrics.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}
