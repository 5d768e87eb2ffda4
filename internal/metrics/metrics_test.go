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

// Tests of what a scrape returns.

package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foolisters "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

// scrape returns the text of a scrape.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if answer.Code != http.StatusOK {
		t.Fatalf("The scrape was answered with %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// listerOf returns a lister of Foos. Each has the condition Ready with the given status
// and another condition, or no condition if the status is "". A name that starts with
// "changed" makes the conditions those of an older generation.
func listerOf(t *testing.T, statuses map[string]metav1.ConditionStatus) foolisters.FooLister {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, status := range statuses {
		foo := &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Generation: 1}}
		if status != "" {
			foo.Status.Conditions = []metav1.Condition{{Type: "Other", Status: "True"}, {Type: samplev1alpha1.ConditionReady, Status: status, ObservedGeneration: 1}}
		}
		if strings.HasPrefix(name, "changed") {
			foo.Generation = 2
		}
		if err := indexer.Add(foo); err != nil {
			t.Fatal(err)
		}
	}
	return foolisters.NewFooLister(indexer)
}

func TestFoosAreCountedByReady(t *testing.T) {
	m, filled := New(), false
	m.CountFoos(listerOf(t, map[string]metav1.ConditionStatus{
		"new": "", "a": "True", "b": "True", "c": "False", "d": "Unknown", "e": "made up", "changed": "True",
	}), func() bool { return filled })
	if text := scrape(t, m); strings.Contains(text, "sample_controller_foos") {
		t.Errorf("A cache that has not synced is counted: %s", text)
	}
	filled = true
	text := scrape(t, m)
	for _, line := range []string{
		`sample_controller_foos{ready="True"} 2`,
		`sample_controller_foos{ready="False"} 1`,
		`sample_controller_foos{ready="Unknown"} 4`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("A scrape does not say %s:\n%s", line, text)
		}
	}
}

func TestMetricsAreNamedAsPrometheusWants(t *testing.T) {
	m := New()
	m.CountFoos(listerOf(t, nil), func() bool { return true })
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}
