// SPDX-License-Identifier: Apache-2.0

// Metrics that count objects by their condition Ready.

package metrics

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
)

// CountByReady adds a metric that counts the objects of a resource, such as "foos", by
// their condition Ready. Call it when the cache has synced: before that, the counts would
// be wrong.
func (m *Metrics) CountByReady(resource string, count func() map[metav1.ConditionStatus]int) {
	m.registry.CustomMustRegister(&readyCollector{count: count, byReady: metrics.NewDesc(
		metrics.BuildFQName("", subsystem, resource),
		"Number of "+resource+" by the status of their condition Ready. One without the condition, or with a condition of an older generation, counts as Unknown. Each replica counts all that it watches.",
		[]string{"ready"}, nil, metrics.ALPHA, "")})
}

// readyCollector counts the objects of a cache at each scrape, so that the count is also
// right on a standby and cannot drift.
type readyCollector struct {
	metrics.BaseStableCollector

	count   func() map[metav1.ConditionStatus]int
	byReady *metrics.Desc
}

// DescribeWithStability describes what CollectWithStability sends.
func (c *readyCollector) DescribeWithStability(descriptions chan<- *metrics.Desc) {
	descriptions <- c.byReady
}

// CollectWithStability sends the counts.
func (c *readyCollector) CollectWithStability(values chan<- metrics.Metric) {
	for status, count := range c.count() {
		values <- metrics.NewLazyConstMetric(c.byReady, metrics.GaugeValue, float64(count), string(status))
	}
}
