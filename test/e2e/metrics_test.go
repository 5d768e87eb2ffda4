// SPDX-License-Identifier: Apache-2.0

// The metrics: those that the documents, alerts and dashboard use exist, and who may read
// them.

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
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
	tr := newTrial(t)
	// Run as a leader and with a limit on requests, so that each metric has a value.
	r := tr.start(append(tr.electionFlags(), "-kube-api-qps=1000", servesMetrics)...)
	token := tr.newReader("reader", metricsReader, "/metrics")
	tr.readyFoo("very-own-name", "its-child", 1)
	children := footest.Primary.Resource
	lines := tr.awaitMetrics(r, token, `sample_controller_foos{ready="True"} 1`,
		`sample_controller_writes_total{resource="`+children.Resource+`",verb="create"} 1`, masterStatus(1),
		fmt.Sprintf(`informer_queued_items{group=%q,name="sample-controller",resource=%q,version=%q} 0`,
			children.Group, children.Resource, children.Version),
		// informer-gen v0.37.2 appends an s to the kind here, whatever the plural is.
		`informer_queued_items{group="samplecontroller.k8s.io",name="sample-controller",resource="foo`+`s",version="v1alpha1"} 0`)

	names := map[string]bool{}
	for _, line := range lines {
		for _, object := range []string{"very-own-name", "its-child", tr.ns} {
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
	for _, file := range []string{"rules.yaml", "dashboard.json"} {
		for _, name := range selectedIn(t, file) {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(names)), regexp.MustCompile("^(?:"+name+")$").MatchString) {
				t.Errorf("There is no metric %s, which is used in %s", name, file)
			}
		}
	}
}

// usedMetric matches a metric with its labels in an expression, or a pattern of its name. Two braces
// begin a template.
var usedMetric = regexp.MustCompile(`([a-zA-Z_:][\w:]*)\{[^{]|__name__=~\\?"([^"\\]+)`)

// selectedIn returns the metrics, or patterns, that the alert rules or the dashboard use.
func selectedIn(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(moduleRoot, "artifacts", "monitoring", file))
	footest.Must(t, err)
	var names []string
	for _, match := range usedMetric.FindAllStringSubmatch(string(content), -1) {
		if match[1] != "up" { // Prometheus' own
			names = append(names, match[1]+match[2])
		}
	}
	if len(names) < 10 {
		t.Errorf("%s uses only the metrics %v", file, names)
	}
	return names
}

func TestMetricsNeedPermission(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	r := tr.start(servesMetrics)
	tr.kubectl("create", "serviceaccount", "another")
	another, err := testcluster.Token(t.Context(), tr.cluster.kube, tr.ns, "another")
	footest.Must(t, err)
	for _, test := range []struct {
		who, token string
		code       int
		says       string
	}{
		{"no token", "", http.StatusUnauthorized, "bearer token"},
		{"a made-up token", "made-up", http.StatusUnauthorized, "does not accept"},
		{"another service account", another, http.StatusForbidden, tr.ns + ":another"},
		{"the shipped permission", tr.newReader("reader", metricsReader, "/metrics"), http.StatusOK, "sample_controller_sync_duration_seconds_bucket"},
	} {
		got := ask(t, tr.metricsURL(r), test.token)
		if got.code != test.code || !strings.Contains(got.body, test.says) {
			t.Errorf("With %s the response is %d: %.300s, want %d: … %s", test.who, got.code, got.body, test.code, test.says)
		}
	}
}

// servedAt returns the address at which a controller serves health or metrics.
func (tr *trial) servedAt(r *replica, what string) string {
	tr.t.Helper()
	tr.awaitLog(r, `"Serving `+what+`"`, 1)
	found := regexp.MustCompile(`"Serving ` + what + `" address="([^"]+)"`).FindStringSubmatch(r.log.String())
	if found == nil {
		tr.failf("the log does not say where %s is served", what)
	}
	return found[1]
}

func (tr *trial) metricsURL(r *replica) string {
	tr.t.Helper()
	return "https://" + tr.servedAt(r, "metrics") + "/metrics"
}

// answer is the response to a GET.
type answer struct {
	code   int
	body   string
	header http.Header
}

// ask sends a GET, with a token unless it is empty. It accepts any certificate.
func ask(t *testing.T, url, token string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	footest.Must(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}).RoundTrip(request)
	footest.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	footest.Must(t, err)
	return answer{response.StatusCode, string(body), response.Header}
}

// metricsReader is the name of the shipped ClusterRole for readers of metrics.
const metricsReader = shipped + "-metrics-reader"

// newReader creates a service account with a ClusterRole, and returns a token for it once it
// may get a path.
func (tr *trial) newReader(name, role, path string) (token string) {
	tr.t.Helper()
	tr.kubectl("create", "serviceaccount", name)
	tr.kubectl("create", "clusterrolebinding", tr.ns+"-"+name, "--clusterrole="+role, "--serviceaccount="+tr.ns+":"+name)
	tr.kubectl("label", "clusterrolebinding", tr.ns+"-"+name, runLabel+"="+run.id)
	user := "system:serviceaccount:" + tr.ns + ":" + name
	tr.await(user+" may get "+path, func(ctx context.Context) error { return tr.cluster.allows(ctx, user, "get", path) })
	token, err := testcluster.Token(tr.ctx, tr.cluster.kube, tr.ns, name)
	tr.must(err)
	return token
}

// allows returns an error unless a user may do something. The API server learns of roles by watches.
func (c *testCluster) allows(ctx context.Context, user string, args ...string) error {
	_, err := testcluster.Kubectl(ctx, os.Getenv("DEVCLUSTER_BIN"), c.kubeconfig, append([]string{"auth", "can-i", "--as=" + user}, args...)...)
	return err
}

// awaitMetrics scrapes until the metrics contain all wanted lines, and returns the
// metrics, without comments.
func (tr *trial) awaitMetrics(r *replica, token string, want ...string) []string {
	tr.t.Helper()
	var lines []string
	tr.await("the metrics have these lines", func(context.Context) error {
		got := ask(tr.t, tr.metricsURL(r), token)
		if got.code != http.StatusOK {
			return fmt.Errorf("the metrics endpoint returned %d: %s", got.code, got.body)
		}
		lines = slices.DeleteFunc(strings.Split(strings.TrimSpace(got.body), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
		for _, line := range want {
			if !slices.Contains(lines, line) {
				return fmt.Errorf("there is no %s in\n%s", line, got.body)
			}
		}
		return nil
	})
	return lines
}
