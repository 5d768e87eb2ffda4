// SPDX-License-Identifier: Apache-2.0

// Tests of what a scrape returns.

package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestObjectsAreCountedByReady(t *testing.T) {
	m := New()
	m.CountByReady("foos", func() map[metav1.ConditionStatus]int {
		return map[metav1.ConditionStatus]int{metav1.ConditionTrue: 2, metav1.ConditionFalse: 0}
	})
	text := scrape(t, m)
	for _, line := range []string{`sample_controller_foos{ready="True"} 2`, `sample_controller_foos{ready="False"} 0`} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("A scrape does not say %s:\n%s", line, text)
		}
	}
}

func TestMetricsAreNamedAsPrometheusWants(t *testing.T) {
	m := New()
	m.CountByReady("foos", func() map[metav1.ConditionStatus]int { return nil })
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
