// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/kinds"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
)

const address, token = "127.0.0.1:8000", "SECRET"

// TestStrangersGetNothing makes requests that neither the user nor the page makes.
func TestStrangersGetNothing(t *testing.T) {
	page := guard(token, address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "shop") }))
	for name, test := range map[string]struct {
		method, token string
		headers       map[string]string
		want          int
	}{
		"the page":                     {"GET", token, nil, 200},
		"by the name localhost":        {"GET", token, map[string]string{"Host": "localhost:8000"}, 200},
		"a request of the page":        {"GET", token, map[string]string{"Origin": "http://" + address, "Sec-Fetch-Site": "same-origin"}, 200},
		"a typed address":              {"GET", token, map[string]string{"Sec-Fetch-Site": "none"}, 200},
		"no token":                     {"GET", "", nil, 401},
		"a wrong token":                {"GET", "PUBLIC", nil, 401},
		"a part of the token":          {"GET", token[1:], nil, 401},
		"a longer token":               {"GET", token + "0", nil, 401},
		"a wrong and the token":        {"GET", "PUBLIC&token=" + token, nil, 401},
		"a rebound name":               {"GET", token, map[string]string{"Host": "evil.example:8000"}, 421},
		"another port":                 {"GET", token, map[string]string{"Host": "127.0.0.1:1"}, 421},
		"no port":                      {"GET", token, map[string]string{"Host": "127.0.0.1"}, 421},
		"another origin":               {"GET", token, map[string]string{"Origin": "http://evil.example"}, 403},
		"another program's origin":     {"GET", token, map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		"no origin in a sandbox":       {"GET", token, map[string]string{"Origin": "null"}, 403},
		"another site":                 {"GET", token, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"a page of another local port": {"GET", token, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"a POST":                       {"POST", token, nil, 405},
		"an OPTIONS of CORS":           {"OPTIONS", token, map[string]string{"Access-Control-Request-Method": "GET"}, 405},
	} {
		request, got := httptest.NewRequestWithContext(t.Context(), test.method, "http://"+address+"/?token="+test.token, http.NoBody), httptest.NewRecorder()
		for header, value := range test.headers {
			request.Header.Set(header, value)
		}
		if host := test.headers["Host"]; host != "" {
			request.Host = host
		}
		page.ServeHTTP(got, request)
		if isShown := strings.Contains(got.Body.String(), "shop"); got.Code != test.want || isShown != (test.want == http.StatusOK) || strings.Contains(got.Body.String(), token) {
			t.Errorf("%s: status %d, want %d: %s", name, got.Code, test.want, got.Body)
		}
		for header, want := range map[string]string{
			"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Access-Control-Allow-Origin": "", "Set-Cookie": "",
		} {
			if value := got.Header().Get(header); value != want {
				t.Errorf("%s: the header %s is %q, want %q", name, header, value, want)
			}
		}
	}
}

// TestALostServerIsAnError checks that the page learns that it is out of date, and why.
func TestALostServerIsAnError(t *testing.T) {
	t.Setenv(clientcmd.RecommendedConfigPathEnvVar, os.DevNull)
	config := genericclioptions.NewConfigFlags(false)
	*config.APIServer = "http://127.0.0.1:1" // no one listens there
	lost, err := cluster.New(config, false)
	footest.Must(t, err)
	page := &page{Options: Options{Cluster: lost, Kinds: kinds.Declared(kinds.Options{})}}
	got := httptest.NewRecorder()
	handler(page, token).ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	if got.Code != http.StatusBadGateway || !strings.Contains(got.Body.String(), "connection refused") {
		t.Errorf("status %d: %s", got.Code, got.Body)
	}
}
