// SPDX-License-Identifier: Apache-2.0

// What a scrape returns, and the names in it.

package metrics

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scrape returns the program's own metrics.
func scrape(m *Metrics) (text string) {
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", http.NoBody))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.Contains(line, "gadget_controller") {
			text += line
		}
	}
	return text
}

// A scrape after one sync of a Gadget, which wrote its status.
func Example() {
	m := New("gadget-controller", "Gadget")
	m.CountByReady("gadgets", func() map[metav1.ConditionStatus]int {
		return map[metav1.ConditionStatus]int{metav1.ConditionTrue: 2, metav1.ConditionFalse: 0}
	})
	m.Wrote("update", "gadgets/status")
	m.Synced(Success, 20*time.Millisecond)

	for line := range strings.Lines(scrape(m)) {
		if line[0] != '#' && (strings.Contains(line, "gadgets") || strings.Contains(line, "_seconds_count{")) {
			fmt.Print(line)
		}
	}
	// Output:
	// gadget_controller_gadgets{ready="False"} 0
	// gadget_controller_gadgets{ready="True"} 2
	// gadget_controller_sync_duration_seconds_count{result="error"} 0
	// gadget_controller_sync_duration_seconds_count{result="panic"} 0
	// gadget_controller_sync_duration_seconds_count{result="retry"} 0
	// gadget_controller_sync_duration_seconds_count{result="success"} 1
	// gadget_controller_writes_total{resource="gadgets/status",verb="update"} 1
}

func TestMetricsAreNamedAsPrometheusWants(t *testing.T) {
	m := New("gadget-controller", "Gadget")
	m.CountByReady("gadgets", func() map[metav1.ConditionStatus]int { return nil })
	problems, err := promlint.New(strings.NewReader(scrape(m))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}
