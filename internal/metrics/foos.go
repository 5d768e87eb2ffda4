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

// The metric that counts Foos by their condition Ready.

package metrics

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foolisters "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

// CountFoos adds a metric that counts the Foos in a cache by their condition Ready.
// filled reports whether the cache has synced.
func (m *Metrics) CountFoos(foos foolisters.FooLister, filled func() bool) {
	m.registry.CustomMustRegister(&fooCollector{foos: foos, filled: filled, byReady: metrics.NewDesc(
		metrics.BuildFQName("", subsystem, "foos"),
		"Number of Foos by the status of their condition Ready. A Foo without the condition, or with a condition of an older generation, counts as Unknown. Each replica counts all Foos that it watches.",
		[]string{"ready"}, nil, metrics.ALPHA, "")})
}

// fooCollector counts the Foos in the cache at each scrape, so that the count is also
// right on a standby and cannot drift.
type fooCollector struct {
	metrics.BaseStableCollector

	foos    foolisters.FooLister
	filled  func() bool
	byReady *metrics.Desc
}

// DescribeWithStability describes what CollectWithStability sends.
func (c *fooCollector) DescribeWithStability(descriptions chan<- *metrics.Desc) {
	descriptions <- c.byReady
}

// CollectWithStability sends the counts. It sends nothing before the cache has synced,
// because the counts would be wrong.
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

// countByReady counts Foos by the status of their condition Ready. A condition of an
// older generation counts as Unknown: a changed Foo must not count as ready while its
// status can't be written.
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
