// SPDX-License-Identifier: Apache-2.0

// Tests of the server: its address, TLS, certificates, stop and log, and the health of the
// process.

package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// A probe of a controller before and after its caches are filled.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	filled := false
	watchdog := leaderelection.NewLeaderHealthzAdaptor(20 * time.Second) // for election.Config, too
	health := ControllerHealth(ctx, watchdog, func() bool { return filled })
	server, err := Listen("127.0.0.1:0", health, nil)
	for _, filled = range []bool{false, true} {
		answer := httptest.NewRecorder()
		health.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody))
		fmt.Println(answer.Code)
	}
	stop()
	fmt.Println(err, server.Serve(ctx)) // it responds until the stop
	// Output:
	// 500
	// 200
	// <nil> <nil>
}

// A client that connects before Serve is called waits for it.
func TestTheAddressIsTakenBeforeAnythingIsServed(t *testing.T) {
	server, err := Listen("127.0.0.1:0", secret, nil)
	must(t, err)
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Address())
	if err != nil {
		t.Fatalf("The server does not listen: %v", err)
	}
	connection.Close()
	must(t, server.listener.Close())
	if err := server.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), server.Address()) {
		t.Errorf("Without its listener: got %v, want an error that names the address", err)
	}
}

func TestTLSAndHTTPVersions(t *testing.T) {
	secure, err := SelfSigned()
	must(t, err)
	inNetwork(t, secret, secure, func(t *testing.T, n *network) {
		for _, row := range []struct {
			min, max uint16
			verify   bool
			want     string // in the error
		}{
			{tls.VersionTLS12, tls.VersionTLS12, false, ""},
			{tls.VersionTLS12, tls.VersionTLS13, false, ""},
			{tls.VersionTLS10, tls.VersionTLS11, false, "protocol version"},
			{tls.VersionTLS12, tls.VersionTLS13, true, "certificate"},
		} {
			client := tls.Client(n.dial(), &tls.Config{
				ServerName: "here", InsecureSkipVerify: !row.verify, MinVersion: row.min, MaxVersion: row.max, NextProtos: []string{"h2", "http/1.1"},
			})
			err := client.HandshakeContext(t.Context())
			if err == nil != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("With %s: got %v, want %q", tls.VersionName(row.max), err, row.want)
			}
			if got := client.ConnectionState(); err == nil {
				if got.Version != row.max || got.NegotiatedProtocol != "http/1.1" {
					t.Errorf("Got %s by %s, want HTTP/1.1 by %s", got.NegotiatedProtocol, tls.VersionName(got.Version), tls.VersionName(row.max))
				}
				if key := got.PeerCertificates[0].PublicKeyAlgorithm; key != x509.ECDSA {
					t.Errorf("The key is of %s, which makes handshakes slow", key)
				}
			}
			client.NetConn().Close()
		}
		if code := ask(t, n.dial(), "/", "p"); code != http.StatusBadRequest {
			t.Errorf("Without TLS: got %d, want a refusal", code)
		}
	})
}

func TestAStopWaitsForResponsesUnderWayForABoundedTime(t *testing.T) {
	for took, want := range map[time.Duration]string{ShutdownTimeout - 1: "late", ShutdownTimeout + 1: ""} {
		late := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-time.After(took)
			if r.Context().Err() == nil {
				_, _ = io.WriteString(w, "late")
			}
		})
		inNetwork(t, late, nil, func(t *testing.T, n *network) {
			client := n.dial()
			_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
			synctest.Wait()
			start := time.Now()
			n.stop()
			synctest.Wait()
			if !isClosed(n.closed) {
				t.Error("The address is not given up at once")
			}
			answer, _ := io.ReadAll(client)
			_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
			if stopped := time.Since(start); body != want || stopped != min(took, ShutdownTimeout) {
				t.Errorf("After %v, the client got %q for an answer of %v", stopped, answer, took)
			}
			<-time.After(time.Second) // until the handler has ended, too
		})
	}
}

func TestWhatAnybodyCanCauseIsNotLoggedByDefault(t *testing.T) {
	var output bytes.Buffer
	logger := errorLog{textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&output)))}
	for _, message := range []string{"http: TLS handshake error from 10.0.0.1:1: EOF\n", "http: panic serving 10.0.0.1:1: oops\n"} {
		_, err := logger.Write([]byte(message))
		must(t, err)
	}
	klog.Flush()
	if text := output.String(); strings.Contains(text, "handshake") || !strings.Contains(text, "oops") {
		t.Errorf("Logged: %s", text)
	}
}

func TestHealth(t *testing.T) {
	tests := []struct {
		what                   string
		stuck, filled, stopped bool
		path                   string
		code                   int
		says                   string
	}{
		{"alive", false, false, false, "/healthz", http.StatusOK, "ok"},
		{"alive while it stops", false, true, true, "/healthz", http.StatusOK, "ok"},
		{"alive, in detail", false, true, false, "/healthz?verbose", http.StatusOK, "[+]ping ok\n[+]leaderElection ok\n"},
		{"stuck", true, true, false, "/healthz", http.StatusInternalServerError, "[-]leaderElection failed"},
		{"stuck, and why", true, true, false, "/healthz/leaderElection", http.StatusInternalServerError, "Lease is over"},
		{"ready", false, true, false, "/readyz", http.StatusOK, "ok"},
		{"ready by its own checks", true, true, false, "/readyz", http.StatusOK, "ok"},
		{"ready, in detail", false, true, false, "/readyz?verbose", http.StatusOK, "[+]ping ok\n[+]caches ok\n[+]shutdown ok\n"},
		{"not ready before the caches are filled", false, false, false, "/readyz", http.StatusInternalServerError, "[-]caches failed"},
		{"not ready, and why", false, false, false, "/readyz/caches", http.StatusInternalServerError, "not filled"},
		{"a check left out", false, false, false, "/readyz?exclude=caches", http.StatusOK, "ok"},
		{"not ready while it stops", false, true, true, "/readyz", http.StatusInternalServerError, "[-]shutdown failed"},
		{"nothing else", false, true, false, "/metrics", http.StatusNotFound, ""},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if test.stopped {
				stop()
			}
			watchdog := healthz.NamedCheck("leaderElection", func(*http.Request) error {
				if test.stuck {
					return errors.New("Lease is over")
				}
				return nil
			})
			answer := get(t, ControllerHealth(ctx, watchdog, func() bool { return test.filled }), test.path, "")
			if answer.Code != test.code || !strings.Contains(answer.Body.String(), test.says) {
				t.Errorf("Got %d: %q, want %d: … %q", answer.Code, answer.Body, test.code, test.says)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writeCertificate creates a certificate for a host and returns the names of its files.
func writeCertificate(t *testing.T, folder, host string) (certFile, keyFile string) {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	must(t, err)
	certFile, keyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	must(t, os.WriteFile(certFile, certificate, 0o600))
	must(t, os.WriteFile(keyFile, key, 0o600))
	return certFile, keyFile
}

func TestCertificateFilesAreReadAgain(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := writeCertificate(t, folder, "first")
	synctest.Test(t, func(t *testing.T) {
		secure, err := FromFiles(certFile, keyFile)
		must(t, err)
		inNetworkOf(t, secret, secure, func(t *testing.T, n *network) {
			expect := func(after time.Duration, want string) {
				t.Helper()
				<-time.After(after)
				client := tls.Client(n.dial(), &tls.Config{InsecureSkipVerify: true})
				defer client.NetConn().Close()
				must(t, client.HandshakeContext(t.Context()))
				if host := client.ConnectionState().PeerCertificates[0].DNSNames[0]; host != want {
					t.Errorf("The certificate is for %q, want %q", host, want)
				}
			}
			expect(0, "first")
			writeCertificate(t, folder, "second")
			expect(rereadAfter-1, "first")
			expect(1, "second")
			must(t, os.WriteFile(certFile, []byte("garbage"), 0o600)) // an unusable one does not replace it
			expect(rereadAfter, "second")
			writeCertificate(t, folder, "third")
			expect(rereadAfter, "third")
		})
	})
}

// authority is an API server that knows three tokens: two of the user "prometheus", who
// may get /metrics, and one of "visitor", who has no permission.
type authority struct {
	client *fake.Clientset
	// knowsAll is true if every other token belongs to a user without permission.
	knowsAll bool
	// tokenReviews and accessReviews count the reviews, including retries.
	tokenReviews, accessReviews atomic.Int32
	// lastAccess is the spec of the last SubjectAccessReview.
	lastAccess atomic.Pointer[authorizationv1.SubjectAccessReviewSpec]
	// tokenFault and accessFault are called for each review. If they return an error, that is
	// the response.
	tokenFault, accessFault func() error
}

var errOutage = errors.New("etcd is on fire")

func newAuthority() *authority {
	none := func() error { return nil }
	a := &authority{client: fake.NewClientset(), tokenFault: none, accessFault: none}
	users := map[string]string{"p": "prometheus", "p2": "prometheus", "v": "visitor"}
	a.client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a.tokenReviews.Add(1)
		if err := a.tokenFault(); err != nil {
			return true, nil, err
		}
		review := created[*authenticationv1.TokenReview](action)
		name := users[review.Spec.Token]
		if name == "" && a.knowsAll {
			name = review.Spec.Token
		}
		if name == "" {
			review.Status.Error = "invalid bearer token"
			return true, review, nil
		}
		review.Status.Authenticated = true
		review.Status.User = authenticationv1.UserInfo{
			Username: name, UID: name + "-uid", Groups: []string{"people"},
			Extra: map[string]authenticationv1.ExtraValue{"pod": {name + "-0"}},
		}
		return true, review, nil
	})
	a.client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a.accessReviews.Add(1)
		if err := a.accessFault(); err != nil {
			return true, nil, err
		}
		review := created[*authorizationv1.SubjectAccessReview](action)
		a.lastAccess.Store(review.Spec.DeepCopy())
		review.Status.Allowed = review.Spec.User == "prometheus" && review.Spec.NonResourceAttributes.Verb == "get"
		return true, review, nil
	})
	return a
}

func created[T runtime.Object](action clienttesting.Action) T {
	return action.(clienttesting.CreateAction).GetObject().DeepCopyObject().(T)
}

// asked returns the numbers of token reviews and access reviews.
func (a *authority) asked() [2]int32 {
	return [2]int32{a.tokenReviews.Load(), a.accessReviews.Load()}
}

// get sends a request with a token, and returns the response.
func get(t *testing.T, handler http.Handler, path, token string) *httptest.ResponseRecorder {
	t.Helper()
	return send(handler, request(t, http.MethodGet, path, token))
}

// request returns a request with a token.
func request(t *testing.T, method, path, token string) *http.Request {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	request.Header.Set("Authorization", "Bearer "+token)
	return request
}

func send(handler http.Handler, request *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

// secret is the handler that the gate guards.
var secret = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("the secret"))
})
