// SPDX-License-Identifier: Apache-2.0

// The metrics: those that the documents, alerts and dashboard use exist, and who may read
// them.

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

	authorizationv1 "k8s.io/api/authorization/v1"
	certutil "k8s.io/client-go/util/cert"

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
	ns := newNamespace(t)
	// Run as a leader and with a limit on requests, so that each metric has a value.
	p := startController(t, append(ns.newAccount(t).flags(),
		"-namespace="+ns.name, "-kube-api-qps=1000", "-metrics-bind-address="+anyPort)...)
	token := ns.newReader(t, "reader", metricsReader+ns.name, "/metrics")
	foo := newFoo("very-own-name", 1)
	footest.FooOwner.Rename(foo, "its-child")
	ns.createReadyFoo(t, foo)
	children := footest.Primary.Resource
	lines := p.awaitMetrics(t, token, `sample_controller_foos{ready="True"} 1`,
		`sample_controller_writes_total{resource="`+children.Resource+`",verb="create"} 1`, masterStatus(ns, 1),
		fmt.Sprintf(`informer_queued_items{group=%q,name="sample-controller",resource=%q,version=%q} 0`,
			children.Group, children.Resource, children.Version),
		// informer-gen v0.37.2 appends an s to the kind here, whatever the plural is.
		`informer_queued_items{group="samplecontroller.k8s.io",name="sample-controller",resource="foo`+`s",version="v1alpha1"} 0`)

	names := map[string]bool{}
	for _, line := range lines {
		for _, object := range []string{"very-own-name", "its-child", ns.name} {
			// The Lease has its own name, which is no Foo's.
			if strings.Contains(line, object) && !strings.HasPrefix(line, "leader_election_") {
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

// selector matches a metric with its labels in an expression, or a pattern of its name. Two braces
// begin a template.
var selector = regexp.MustCompile(`([a-zA-Z_:][\w:]*)\{[^{]|__name__=~\\?"([^"\\]+)`)

// selectedIn returns the metrics, or patterns, that the alert rules or the dashboard use.
func selectedIn(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(moduleRoot, "artifacts", "monitoring", file))
	footest.Must(t, err)
	var names []string
	for _, match := range selector.FindAllStringSubmatch(string(content), -1) {
		if match[1] != "up" { // Prometheus' own
			names = append(names, match[1]+match[2])
		}
	}
	if len(names) < 10 {
		t.Errorf("%s uses only the metrics %v", file, names)
	}
	return names
}

// TestMetricsNeedPermission checks who may read metrics and profiles, with a certificate
// from files.
func TestMetricsNeedPermission(t *testing.T) {
	t.Parallel()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("metrics.example", nil, nil)
	footest.Must(t, err)
	folder := t.TempDir()
	ns := newNamespace(t)
	p := ns.startController(t, "-metrics-bind-address="+anyPort, "-profiling",
		"-tls-cert-file="+writeFile(t, folder, "tls.crt", string(certificate)),
		"-tls-private-key-file="+writeFile(t, folder, "tls.key", string(key)))
	const profile = "/debug/pprof/heap"
	profiles := ns.name + "-profiles"
	createLabelled(t, "clusterrole", profiles, "--verb=get", "--non-resource-url=/debug/pprof/*")
	reader := ns.newReader(t, "reader", metricsReader+cluster.account.namespace, "/metrics")
	developer := ns.newReader(t, "developer", profiles, profile)

	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	secure := &tls.Config{RootCAs: trusted, ServerName: "metrics.example"}
	for _, test := range []struct {
		who, token, path string
		code             int
		says             string
	}{
		{"no token", "", "/metrics", http.StatusUnauthorized, "bearer token"},
		{"a made-up token", "made-up", "/metrics", http.StatusUnauthorized, "does not accept"},
		{"another service account", developer, "/metrics", http.StatusForbidden, ns.name + ":developer"},
		{"the shipped permission", reader, "/metrics", http.StatusOK, "sample_controller_sync_duration_seconds_bucket"},
		{"no token", "", profile, http.StatusUnauthorized, "bearer token"},
		{"a reader of metrics", reader, profile, http.StatusForbidden, ns.name + ":reader"},
		{"a developer", developer, profile, http.StatusOK, ""},
	} {
		got := askBy(t, secure, strings.Replace(p.metricsURL(t), "/metrics", test.path, 1), test.token)
		if got.code != test.code || !strings.Contains(got.body, test.says) {
			t.Errorf("With %s the response to %s is %d: %.300s, want %d: … %s",
				test.who, test.path, got.code, got.body, test.code, test.says)
		}
	}
}

// anyPort makes the controller listen on a free port, which it logs.
const anyPort = "127.0.0.1:0"

// servedAt returns the address at which a controller serves health or metrics.
func (p *process) servedAt(t *testing.T, what string) string {
	t.Helper()
	p.awaitLog(t, `"Serving `+what+`"`, 1)
	found := regexp.MustCompile(`"Serving ` + what + `" address="([^"]+)"`).FindStringSubmatch(p.log.String())
	if found == nil {
		t.Fatalf("The log does not say where %s is served", what)
	}
	return found[1]
}

func (p *process) metricsURL(t *testing.T) string {
	t.Helper()
	return "https://" + p.servedAt(t, "metrics") + "/metrics"
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
	return askBy(t, &tls.Config{InsecureSkipVerify: true}, url, token)
}

// askBy is ask with a TLS configuration.
func askBy(t *testing.T, secure *tls.Config, url, token string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	footest.Must(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}).RoundTrip(request)
	footest.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	footest.Must(t, err)
	return answer{response.StatusCode, string(body), response.Header}
}

// metricsReader begins the name of the shipped ClusterRole for readers of metrics. The
// namespace of the account with which it was installed follows.
const metricsReader = shippedName + "-metrics-reader-"

// newReader creates a service account with a ClusterRole, and returns a token for it once it
// may get a path.
func (ns *namespace) newReader(t *testing.T, name, role, path string) (token string) {
	t.Helper()
	ns.kubectl(t, "create", "serviceaccount", name)
	createLabelled(t, "clusterrolebinding", ns.name+"-"+name, "--clusterrole="+role, "--serviceaccount="+ns.name+":"+name)
	reader := &account{namespace: ns.name, name: name}
	footest.Must(t, awaitAllowed(t.Context(), cluster.kube, reader.user(), grant{ResourceAttributes: authorizationv1.ResourceAttributes{Resource: path, Verb: "get"}}))
	token, err := testcluster.Token(t.Context(), cluster.kube, ns.name, name)
	footest.Must(t, err)
	return token
}

// createLabelled creates an object outside namespaces with kubectl and gives it the run's label.
func createLabelled(t *testing.T, kind, name string, args ...string) {
	t.Helper()
	cluster.kubectl(t, append([]string{"create", kind, name}, args...)...)
	cluster.kubectl(t, "label", kind, name, runLabel+"="+cluster.run)
}

// awaitMetrics scrapes until the metrics contain all wanted lines, and returns the
// metrics, without comments.
func (p *process) awaitMetrics(t *testing.T, token string, want ...string) []string {
	t.Helper()
	var lines []string
	awaitThat(t, "the metrics have these lines", func(context.Context) error {
		got := ask(t, p.metricsURL(t), token)
		if got.code != http.StatusOK {
			return fmt.Errorf("the metrics endpoint returned %d: %s", got.code, got.body)
		}
		lines = nil
		for line := range strings.Lines(got.body) {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, strings.TrimSuffix(line, "\n"))
			}
		}
		for _, line := range want {
			if !strings.Contains("\n"+got.body, "\n"+line+"\n") {
				return fmt.Errorf("there is no %s in\n%s", line, got.body)
			}
		}
		return nil
	})
	return lines
}
