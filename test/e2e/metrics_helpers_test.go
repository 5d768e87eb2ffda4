// SPDX-License-Identifier: Apache-2.0

// How the tests scrape metrics: addresses, tokens and permissions.

package e2e

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/test/testcluster"
)

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
