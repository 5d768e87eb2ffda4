// SPDX-License-Identifier: Apache-2.0

// The metrics: those that the documents, alerts and dashboard use exist.

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/sample-controller/test/footest"
)

// promised are the metrics that the documents and alerts use.
var promised = []string{
	"sample_controller_sync_duration_seconds_bucket", "sample_controller_sync_duration_seconds_sum", "sample_controller_sync_duration_seconds_count",
	"sample_controller_writes_total", "sample_controller_refusals_total", "sample_controller_stale_syncs_total", "sample_controller_sync_panics_total", "sample_controller_foos",
	"workqueue_depth", "workqueue_adds_total", "workqueue_retries_total", "workqueue_queue_duration_seconds_bucket",
	"workqueue_work_duration_seconds_bucket", "workqueue_longest_running_processor_seconds", "workqueue_unfinished_work_seconds",
	"rest_client_requests_total", "rest_client_request_duration_seconds_bucket", "rest_client_rate_limiter_duration_seconds_bucket",
	"leader_election_master_status",
	"informer_queued_items", "informer_processing_latency_seconds_bucket", "informer_store_resource_version",
	"go_build_info", "go_goroutines", "process_resident_memory_bytes", "process_cpu_seconds_total",
}

func TestThePromisedMetricsExist(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	// Run as a leader and with a limit on requests, so that each metric has a value.
	p := startController(t, "-kubeconfig="+ns.newAccount(t).kubeconfig, "-namespace="+ns.name,
		"-leader-elect", "-kube-api-qps=1000", "-metrics-bind-address="+anyPort)
	token := ns.newReader(t)
	ns.createReadyFoo(t, newFoo("very-own-name", withChild("its-child")))
	lines := p.awaitMetrics(t, token, `sample_controller_foos{ready="True"} 1`,
		`sample_controller_writes_total{resource="`+childResource+`",verb="create"} 1`,
		`leader_election_master_status{name="sample-controller"} 1`,
		fmt.Sprintf(`informer_queued_items{group=%q,name="sample-controller",resource=%q,version=%q} 0`,
			footest.Primary.Resource.Group, childResource, footest.Primary.Resource.Version),
		// informer-gen v0.37.2 appends an s to the kind here, whatever the plural is.
		`informer_queued_items{group="samplecontroller.k8s.io",name="sample-controller",resource="foo`+`s",version="v1alpha1"} 0`)

	names := map[string]bool{}
	for _, line := range lines {
		for _, object := range []string{"very-own-name", "its-child", ns.name} {
			if strings.Contains(line, object) {
				t.Errorf("A series has the name of an object in it: %s", line)
			}
		}
		names[line[:strings.IndexAny(line, "{ ")]] = true
	}
	for _, name := range promised {
		if !names[name] {
			t.Errorf("There is no metric %s", name)
		}
	}
	for name, expr := range monitored(t) {
		if !names[name] {
			t.Errorf("There is no metric %s, which is used in %s", name, expr)
		}
	}
}

// selector matches a metric in an expression.
var selector = regexp.MustCompile(`([a-zA-Z_:][\w:]*)\{`)

// monitored returns the metrics that alert rules and dashboard use, each with an
// expression that uses it.
func monitored(t *testing.T) map[string]string {
	t.Helper()
	folder := filepath.Join(moduleRoot, "artifacts", "monitoring")
	metrics := map[string]string{}
	for _, file := range []string{"rules.yaml", "dashboard.json"} {
		content, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		var parsed any
		if err := yaml.Unmarshal(content, &parsed); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		expressions := stringsAt(parsed, "expr")
		if len(expressions) < 10 {
			t.Errorf("%s has only %d expressions", file, len(expressions))
		}
		for _, expr := range expressions {
			found := selector.FindAllStringSubmatch(expr, -1)
			if len(found) == 0 {
				t.Errorf("%s: found no metric with a label selector in %s", file, expr)
			}
			for _, match := range found {
				if match[1] != "up" { // Prometheus' own
					metrics[match[1]] = expr
				}
			}
		}
	}
	return metrics
}

// stringsAt returns all strings with a key, at any depth of a parsed file.
func stringsAt(value any, key string) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for k, v := range value {
			if text, ok := v.(string); ok && k == key {
				found = append(found, text)
			}
			found = append(found, stringsAt(v, key)...)
		}
	case []any:
		for _, v := range value {
			found = append(found, stringsAt(v, key)...)
		}
	}
	return found
}
