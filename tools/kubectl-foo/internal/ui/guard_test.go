// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/test/footest"
)

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string // without that of a stream
}

// get makes a request. A header Host is the host of the request.
func (f *fixture) get(t *testing.T, method, path, token string, headers map[string]string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+f.server.address+path, http.NoBody)
	footest.Must(t, err)
	if token != "" {
		request.URL.RawQuery += "&token=" + token
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	if host := headers["Host"]; host != "" {
		request.Host = host
	}
	response, err := http.DefaultClient.Do(request)
	footest.Must(t, err)
	defer response.Body.Close()
	if strings.HasPrefix(path, "/events") && response.StatusCode == http.StatusOK {
		return answer{response.StatusCode, response.Header, ""}
	}
	body, err := io.ReadAll(response.Body)
	footest.Must(t, err)
	return answer{response.StatusCode, response.Header, string(body)}
}

// TestStrangersGetNothing makes requests that neither the user nor the page makes.
func TestStrangersGetNothing(t *testing.T) {
	f := newFixture(t, team()...).start(t)
	token := f.server.token
	_, port, _ := strings.Cut(f.server.address, ":")
	wrong := strings.Repeat("0", len(token))
	for name, test := range map[string]struct {
		method, token string
		headers       map[string]string
		want          int
	}{
		"the page":                     {"GET", token, nil, 200},
		"by the name localhost":        {"GET", token, map[string]string{"Host": "localhost:" + port}, 200},
		"a request of the page":        {"GET", token, map[string]string{"Origin": "http://" + f.server.address, "Sec-Fetch-Site": "same-origin"}, 200},
		"a typed address":              {"GET", token, map[string]string{"Sec-Fetch-Site": "none"}, 200},
		"no token":                     {"GET", "", nil, 401},
		"a wrong token":                {"GET", wrong, nil, 401},
		"a part of the token":          {"GET", token[:63], nil, 401},
		"a longer token":               {"GET", token + "0", nil, 401},
		"a wrong and the token":        {"GET", wrong + "&token=" + token, nil, 401},
		"a rebound name":               {"GET", token, map[string]string{"Host": "evil.example:" + port}, 421},
		"another port":                 {"GET", token, map[string]string{"Host": "127.0.0.1:1"}, 421},
		"no port":                      {"GET", token, map[string]string{"Host": "127.0.0.1"}, 421},
		"another origin":               {"GET", token, map[string]string{"Origin": "http://evil.example"}, 403},
		"another program's origin":     {"GET", token, map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		"no origin in a sandbox":       {"GET", token, map[string]string{"Origin": "null"}, 403},
		"another site":                 {"GET", token, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"a page of another local port": {"GET", token, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"a POST":                       {"POST", token, nil, 405},
		"a DELETE":                     {"DELETE", token, nil, 405},
		"an OPTIONS of CORS":           {"OPTIONS", token, map[string]string{"Access-Control-Request-Method": "GET"}, 405},
	} {
		for _, path := range []string{"/?", "/style.css?", "/app.js?", "/dom.js?", "/panels.js?", "/icon.svg?", "/events?"} {
			got := f.get(t, test.method, path, test.token, test.headers)
			if got.status != test.want {
				t.Errorf("%s: %s: status %d, want %d", name, path, got.status, test.want)
			}
			if test.want != http.StatusOK && (strings.Contains(got.body, token) || strings.Contains(got.body, "shop")) {
				t.Errorf("%s: %s: it says %q", name, path, got.body)
			}
			for header, want := range map[string]string{
				"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
				"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Access-Control-Allow-Origin": "", "Set-Cookie": "",
			} {
				if value := got.header.Get(header); value != want {
					t.Errorf("%s: %s: the header %s is %q, want %q", name, path, header, value, want)
				}
			}
		}
	}
}

// TestTheTokenIsLongAndNew checks its 256 bits, and that each start has another.
func TestTheTokenIsLongAndNew(t *testing.T) {
	if a, b := newToken(), newToken(); len(a) != 64 || a == b {
		t.Errorf("the tokens are %q and %q", a, b)
	}
}

// TestThePolicyLetsNothingElseIn checks that the page's policy allows neither inline scripts
// nor other hosts.
func TestThePolicyLetsNothingElseIn(t *testing.T) {
	for directive := range strings.SplitSeq(policy, ";") {
		name, sources, _ := strings.Cut(strings.TrimSpace(directive), " ")
		if strings.HasSuffix(name, "-src") && sources != "'self'" && sources != "'none'" {
			t.Errorf("%s allows %s", name, sources)
		}
	}
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %q", want)
		}
	}
}
