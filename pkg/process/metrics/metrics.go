// SPDX-License-Identifier: Apache-2.0

// Package metrics holds a controller's metrics: durations of its syncs by their result, counts
// of its writes and refusals, and the number of its objects by their condition Ready. Its handler
// also serves the metrics of client-go, of the Go runtime and of the process.
//
// Call Synced after each sync, Wrote after each accepted write, Refused after each failed call.
// Work queues and informers (cache.NewInformerName) have metrics only if they have names. The
// series start at 0, so that a first failure is an increase, and don't grow with the cluster.
// client_golang and component-base add 0.8 MiB to the program and 2 MiB of memory at start.
// Package serving can restrict who reads the Handler.
package metrics

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // work queues, requests, leader election and informers report to legacyregistry
)

// Result is how a sync ended.
type Result string

const (
	// Success means that the object was or is now in its desired state.
	Success Result = "success"
	// Retry means that the object is synced again for an everyday reason: a stale cache or a
	// lost race.
	Retry Result = "retry"
	// Error means that the sync failed. The failure is logged.
	Error Result = "error"
	// Panic means that the sync panicked, because of a bug.
	Panic Result = "panic"
)

// maxScrapes bounds the number of concurrent scrapes.
const maxScrapes = 5

// Metrics holds the metrics of the controller's own work. Labels have few, fixed values, never
// the name of an object.
type Metrics struct {
	// StaleSyncs counts syncs deferred because a cache was stale.
	StaleSyncs metrics.CounterMetric
	// Panics counts syncs that panicked and were recovered.
	Panics metrics.CounterMetric

	// prefix begins the names of all: the program's name.
	prefix   string
	registry metrics.KubeRegistry
	// syncs holds the durations of syncs by their result.
	syncs map[Result]metrics.ObserverMetric
	// writes counts writes that the API server accepted.
	writes *metrics.CounterVec
	// refusals counts calls that the API server refused.
	refusals *metrics.CounterVec
}

func counter(prefix, name, help string) *metrics.CounterOpts {
	return &metrics.CounterOpts{Subsystem: prefix, Name: name, Help: help, StabilityLevel: metrics.ALPHA}
}

// New returns the metrics of a program's first kind, such as "Gadget", and a metric with the
// program's build information. Their names begin with the program's name, with "_" for "-". Call
// it once per process, because component-base keeps each registry forever.
func New(program, kind string) *Metrics {
	prefix := strings.ReplaceAll(program, "-", "_")
	writes := metrics.NewCounterVec(counter(prefix, "writes_total",
		"Number of writes that the API server accepted, by verb and resource. There are none while nothing changes. "+
			"Refused writes are in refusals_total."), []string{"verb", "resource"})
	refusals := metrics.NewCounterVec(counter(prefix, "refusals_total",
		"Number of calls of syncs that the API server refused, by cause: permission (of the controller's account); quota; "+
			"policy (for admission); webhook; other. Lost races and failures of the API server do not count."), []string{"cause"})
	m := &Metrics{prefix: prefix, registry: metrics.NewKubeRegistry(), writes: writes, refusals: refusals}
	m.registry.MustRegister(writes, refusals)
	m.registry.Registerer().MustRegister(collectors.NewBuildInfoCollector())
	m.addSyncs(prefix, kind)
	return m
}

// ForKind returns the metrics of another kind of the program. The names of its sync metrics
// contain the kind. The metrics of all kinds are served together. Like New, call it once for each.
func (m *Metrics) ForKind(kind string) *Metrics {
	other := &Metrics{prefix: m.prefix, registry: m.registry, writes: m.writes, refusals: m.refusals}
	other.addSyncs(m.prefix+"_"+strings.ToLower(kind), kind)
	return other
}

// addSyncs adds the metrics of the syncs of a kind.
func (m *Metrics) addSyncs(prefix, kind string) {
	syncs := metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: prefix,
		Name:      "sync_duration_seconds",
		Help: "Duration of the sync of one " + kind + ", writes included, by result: success; retry (an everyday reason, " +
			"such as a stale cache or a lost race); error (logged); panic (a bug).",
		// From a sync that only reads the caches to one with several calls that time out.
		Buckets:        []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})
	staleSyncs := metrics.NewCounter(counter(prefix, "stale_syncs_total",
		"Number of syncs of one "+kind+" that were deferred because a cache did not show the newest state yet."))
	panics := metrics.NewCounter(counter(prefix, "sync_panics_total",
		"Number of syncs that panicked and were recovered. Each is a bug. The log has the stack trace."))
	m.registry.MustRegister(syncs, staleSyncs, panics)
	// Create all series at 0 now, so that a first occurrence shows up as an increase.
	m.StaleSyncs, m.Panics, m.syncs = staleSyncs, panics, map[Result]metrics.ObserverMetric{}
	for _, result := range []Result{Success, Retry, Error, Panic} {
		m.syncs[result] = syncs.WithLabelValues(string(result))
	}
}

// CountWritesTo creates the series of the writes to a resource at 0.
func (m *Metrics) CountWritesTo(resource string, verbs ...string) {
	for _, verb := range verbs {
		m.writes.WithLabelValues(verb, resource)
	}
}

// Wrote counts a write that the API server accepted.
func (m *Metrics) Wrote(verb, resource string) { m.writes.WithLabelValues(verb, resource).Inc() }

// CountRefusalsBy creates the series of the refusals for a cause at 0.
func (m *Metrics) CountRefusalsBy(causes ...string) {
	for _, cause := range causes {
		m.refusals.WithLabelValues(cause)
	}
}

// Refused counts a refused call by cause. It ignores the cause "", which means that the call
// was not refused.
func (m *Metrics) Refused(cause string) {
	if cause != "" {
		m.refusals.WithLabelValues(cause).Inc()
	}
}

// Synced records the result and the duration of a sync.
func (m *Metrics) Synced(result Result, took time.Duration) {
	m.syncs[result].Observe(took.Seconds())
}

// Handler serves these metrics, and the metrics of client-go, the Go runtime and the process, to
// at most five scrapes at the same time. Others get 503.
func (m *Metrics) Handler() http.Handler {
	return metrics.HandlerFor(prometheus.Gatherers{legacyregistry.DefaultGatherer, m.registry},
		metrics.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}

// CountByReady adds a metric that counts the objects of a resource, such as "gadgets", by
// their condition Ready. Call it after the cache has synced: earlier counts would be
// wrong.
func (m *Metrics) CountByReady(resource string, count func() map[metav1.ConditionStatus]int) {
	byReady := prometheus.NewDesc(m.prefix+"_"+resource,
		"[ALPHA] Number of "+resource+" by the status of their condition Ready. Those without the condition, or with one of an older generation, count as Unknown. Each replica counts all that it watches.",
		[]string{"ready"}, nil)
	// It counts at each scrape, so that the count is also right on a standby and can't drift.
	m.registry.Registerer().MustRegister(prometheus.CollectorFunc(func(values chan<- prometheus.Metric) {
		for status, count := range count() {
			values <- prometheus.MustNewConstMetric(byReady, prometheus.GaugeValue, float64(count), string(status))
		}
	}))
}
