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

	"example.com/sample-controller/internal/testcluster"
)

// anyPort is an address with a port that is free; the controller's log says which.
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

// answer is what a server has said to a GET.
type answer struct {
	code int
	body string
}

// ask sends a GET, with a token if there is one. Any certificate will do.
func ask(t *testing.T, url, token string) answer {
	t.Helper()
	got, err := askBy(t.Context(), &tls.Config{InsecureSkipVerify: true}, url, token)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// askBy is ask with a say in which certificate will do.
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

// awaitAnswer asks until the answer has a status.
func awaitAnswer(t *testing.T, url string, code int) {
	t.Helper()
	var last answer
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, cluster.patience(), true, func(context.Context) (bool, error) {
		last = ask(t, url, "")
		return last.code == code, nil
	})
	if err != nil {
		t.Fatalf("%s answers %d: %s, waited for %d", url, last.code, last.body, code)
	}
}

// newToken makes a service account and returns a token of it.
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

// newReader makes a service account with the shipped right to read metrics, and
// returns a token of it.
func (ns *namespace) newReader(t *testing.T) string {
	t.Helper()
	return ns.newReaderOf(t, cluster.account.namespace)
}

// newReaderOf is newReader for the rights that were installed for the account of
// a namespace.
func (ns *namespace) newReaderOf(t *testing.T, installed string) string {
	t.Helper()
	token := ns.newToken(t, "reader")
	ns.bind(t, "reader", shippedName+"-metrics-reader-"+installed, "/metrics")
	return token
}

// bind gives a service account a ClusterRole, and waits until the API server
// lets it get a path by that.
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

// scrape returns the lines of a controller's metrics that are values.
func (p *process) scrape(t *testing.T, token string) []string {
	t.Helper()
	got := ask(t, "https://"+p.servedAt(t, "metrics")+"/metrics", token)
	if got.code != http.StatusOK {
		t.Fatalf("The metrics' answer is %d: %s", got.code, got.body)
	}
	var lines []string
	for line := range strings.Lines(got.body) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// awaitMetrics scrapes until the metrics have all these lines, and returns them.
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
		t.Fatalf("The metrics have no line %q, but\n%s", missing, strings.Join(lines, "\n"))
	}
	return lines
}
