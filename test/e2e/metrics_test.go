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
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

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

func TestMetricsNeedPermission(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	p := ns.startController(t, "-metrics-bind-address="+anyPort)
	url := "https://" + p.servedAt(t, "metrics") + "/metrics"
	reader, stranger := ns.newReader(t), ns.newToken(t, "stranger")

	for _, test := range []struct {
		who, token string
		code       int
		says       string
	}{
		{"no token", "", http.StatusUnauthorized, "bearer token"},
		{"a made-up token", "made-up", http.StatusUnauthorized, "does not accept"},
		{"a service account without permission", stranger, http.StatusForbidden, "system:serviceaccount:" + ns.name + ":stranger"},
		{"a service account with the shipped permission", reader, http.StatusOK, "sample_controller_sync_duration_seconds_bucket"},
	} {
		if got := ask(t, url, test.token); got.code != test.code || !strings.Contains(got.body, test.says) {
			t.Errorf("With %s the response is %d: %.300s, want %d: … %s", test.who, got.code, got.body, test.code, test.says)
		}
	}
	if got, err := askBy(t.Context(), nil, strings.Replace(url, "https", "http", 1), reader); err == nil && got.code != http.StatusBadRequest {
		t.Errorf("Without TLS the response is %d: %.300s", got.code, got.body)
	}
	if _, err := askBy(t.Context(), &tls.Config{}, url, reader); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("A client that verifies the self-signed certificate got %v, want an error", err)
	}
	if got := ask(t, strings.Replace(url, "/metrics", "/debug/pprof/", 1), reader); got.code != http.StatusNotFound {
		t.Errorf("Without -profiling the response for profiles is %d, want 404", got.code)
	}
}

func TestMetricsWithACertificateFromFiles(t *testing.T) {
	t.Parallel()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("metrics.example", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	writeFile(t, folder, "tls.crt", string(certificate))
	writeFile(t, folder, "tls.key", string(key))
	ns := newNamespace(t)
	p := ns.startController(t, "-metrics-bind-address="+anyPort,
		"-tls-cert-file="+filepath.Join(folder, "tls.crt"), "-tls-private-key-file="+filepath.Join(folder, "tls.key"))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	secure := &tls.Config{RootCAs: trusted, ServerName: "metrics.example"}
	got, err := askBy(t.Context(), secure, "https://"+p.servedAt(t, "metrics")+"/metrics", ns.newReader(t))
	if err != nil || got.code != http.StatusOK {
		t.Errorf("A client that trusts the certificate got %d: %v", got.code, err)
	}
}

func TestProfilesNeedPermission(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	p := ns.startController(t, "-metrics-bind-address="+anyPort, "-profiling")
	url := "https://" + p.servedAt(t, "metrics") + "/debug/pprof/heap"
	reader, developer := ns.newReader(t), ns.newToken(t, "developer")
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: ns.name + "-profiles", Labels: map[string]string{runLabel: cluster.run}},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/debug/pprof/*"}, Verbs: []string{"get"}}},
	}
	if _, err := cluster.kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ns.bind(t, "developer", role.Name, "/debug/pprof/heap")
	for token, want := range map[string]int{"": http.StatusUnauthorized, reader: http.StatusForbidden, developer: http.StatusOK} {
		if got := ask(t, url, token); got.code != want {
			t.Errorf("Got %d: %.300s, want %d", got.code, got.body, want)
		}
	}
}

// anyPort makes the controller listen on a free port, which it logs.
const anyPort = "127.0.0.1:0"

var servedAddress = regexp.MustCompile(`"Serving (\w+)" address="([^"]+)"`)

// servedAt returns the address at which a controller serves health or metrics.
func (p *process) servedAt(t *testing.T, what string) string {
	t.Helper()
	p.awaitLog(t, `"Serving `+what+`"`, 1)
	for _, match := range servedAddress.FindAllStringSubmatch(p.log.String(), -1) {
		if match[1] == what {
			return match[2]
		}
	}
	t.Fatalf("The log does not say where %s is served", what)
	return ""
}

// answer is the response to a GET.
type answer struct {
	code int
	body string
}

// ask sends a GET, with a token unless it is empty. It accepts any certificate.
func ask(t *testing.T, url, token string) answer {
	t.Helper()
	got, err := askBy(t.Context(), &tls.Config{InsecureSkipVerify: true}, url, token)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// askBy is ask with a TLS configuration.
func askBy(ctx context.Context, secure *tls.Config, url, token string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.patience())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(body)}, err
}

// awaitAnswer repeats a GET until the response has a status code.
func awaitAnswer(t *testing.T, url string, code int) {
	t.Helper()
	var last answer
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, cluster.patience(), true, func(context.Context) (bool, error) {
		last = ask(t, url, "")
		return last.code == code, nil
	})
	if err != nil {
		t.Fatalf("%s returned %d: %s, waited for %d", url, last.code, last.body, code)
	}
}

// newToken creates a service account and returns a token for it.
func (ns *namespace) newToken(t *testing.T, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := cluster.kube.CoreV1().ServiceAccounts(ns.name).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := testcluster.Token(t.Context(), cluster.kube, ns.name, name)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// newReader creates a service account with the shipped permission to read metrics, and
// returns a token for it.
func (ns *namespace) newReader(t *testing.T) string {
	t.Helper()
	return ns.newReaderOf(t, cluster.account.namespace)
}

// newReaderOf is newReader with the roles that were installed together with the account
// of a namespace.
func (ns *namespace) newReaderOf(t *testing.T, installed string) string {
	t.Helper()
	token := ns.newToken(t, "reader")
	ns.bind(t, "reader", shippedName+"-metrics-reader-"+installed, "/metrics")
	return token
}

// bind binds a service account to a ClusterRole, and waits until it may get a path.
func (ns *namespace) bind(t *testing.T, account, role, path string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns.name + "-" + account, Labels: map[string]string{runLabel: cluster.run}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: ns.name}},
	}
	if _, err := cluster.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:                  "system:serviceaccount:" + ns.name + ":" + account,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, cluster.patience(), true, func(ctx context.Context) (bool, error) {
		review, err := cluster.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	})
	if err != nil {
		t.Fatalf("Waiting until %s may get %s: %v", account, path, err)
	}
}

// scrape returns a controller's metrics, without comments.
func (p *process) scrape(t *testing.T, token string) []string {
	t.Helper()
	got := ask(t, "https://"+p.servedAt(t, "metrics")+"/metrics", token)
	if got.code != http.StatusOK {
		t.Fatalf("The metrics endpoint returned %d: %s", got.code, got.body)
	}
	var lines []string
	for line := range strings.Lines(got.body) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// awaitMetrics scrapes until the metrics contain all wanted lines, and returns the
// metrics.
func (p *process) awaitMetrics(t *testing.T, token string, want ...string) []string {
	t.Helper()
	var lines []string
	missing := ""
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, cluster.patience(), true, func(context.Context) (bool, error) {
		lines = p.scrape(t, token)
		all := "\n" + strings.Join(lines, "\n") + "\n"
		for _, missing = range want {
			if !strings.Contains(all, "\n"+missing+"\n") {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("The metrics have no line %q:\n%s", missing, strings.Join(lines, "\n"))
	}
	return lines
}
