// SPDX-License-Identifier: Apache-2.0

// Tests of the server: its address, TLS, stop and log, and the health of the process.

package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// serve runs a server until the test ends or stop is called. stop returns the error of
// Serve.
func serve(t *testing.T, handler http.Handler, secure *tls.Config) (server *Server, stop func() error) {
	t.Helper()
	server, err := Listen("127.0.0.1:0", handler, secure)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	stop = func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return server, stop
}

// answer is a response of a server.
type answer struct {
	code  int
	proto string
	tls   *tls.ConnectionState
	body  string
}

// fetch sends a GET on a new connection.
func fetch(ctx context.Context, url string, secure *tls.Config) (answer, error) {
	transport := &http.Transport{TLSClientConfig: secure, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Proto, response.TLS, string(body)}, err
}

func TestAnUnusableAddressIsReportedAtOnce(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for address, want := range map[string]string{
		taken.Addr().String():  taken.Addr().String() + ": bind: address already in use",
		"127.0.0.1:99999":      "invalid port",
		"no-such-host.invalid": "missing port",
	} {
		if _, err := Listen(address, secret, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Listening at %s: got %v, want … %s", address, err, want)
		}
	}
}

// A client that connects before Serve is called waits for it.
func TestTheAddressIsTakenBeforeAnythingIsServed(t *testing.T) {
	server, err := Listen("127.0.0.1:0", secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Address())
	if err != nil {
		t.Fatalf("The server does not listen: %v", err)
	}
	connection.Close()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

func TestTLSAndHTTPVersions(t *testing.T) {
	certificate, err := SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	server, _ := serve(t, secret, certificate.Config())
	url := "https://" + server.Address() + "/"

	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		got, err := fetch(t.Context(), url, &tls.Config{InsecureSkipVerify: true, MaxVersion: version})
		if err != nil || got.body != "the secret" {
			t.Fatalf("%s: got %q, %v", tls.VersionName(version), got.body, err)
		}
		if got.tls.Version != version || got.proto != "HTTP/1.1" {
			t.Errorf("Got %s by %s, want HTTP/1.1 by %s", got.proto, tls.VersionName(got.tls.Version), tls.VersionName(version))
		}
		if key := got.tls.PeerCertificates[0].PublicKeyAlgorithm; key != x509.ECDSA {
			t.Errorf("The key is of %s, which makes handshakes slow", key)
		}
	}
	if _, err := fetch(t.Context(), url, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: got %v, want a refusal", err)
	}
	if _, err := fetch(t.Context(), url, &tls.Config{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("A client that verifies the certificate: got %v, want that it does not trust it", err)
	}
	if got, err := fetch(t.Context(), "http://"+server.Address()+"/", nil); err == nil && got.code != http.StatusBadRequest {
		t.Errorf("Without TLS: got %d, want a refusal", got.code)
	}
}

func TestAStopLetsAnAnswerUnderWayFinish(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	server, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-answer
		if r.Context().Err() != nil {
			t.Error("The request was cancelled")
		}
		_, _ = w.Write([]byte("late"))
	}), nil)
	got := make(chan string, 1)
	go func() {
		late, err := fetch(t.Context(), "http://"+server.Address()+"/", nil)
		if err != nil {
			late.body = err.Error()
		}
		got <- late.body
	}()
	<-asked
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	// The listener closes first, then the server waits for the responses under way.
	waitFor(t, "the address to be given up", func() bool {
		connection, err := net.Dial("tcp", server.Address())
		if err == nil {
			connection.Close()
		}
		return err != nil
	})
	close(answer)
	if body := <-got; body != "late" {
		t.Errorf("The client got %q", body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("The server ended with %v", err)
	}
}

func TestAStopWaitsForABoundedTime(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	asked := make(chan struct{})
	server, stop := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-hang
	}), nil)
	go func() { _, _ = fetch(t.Context(), "http://"+server.Address()+"/", nil) }()
	<-asked
	start := time.Now()
	if err := stop(); err != nil {
		t.Errorf("The server ended with %v", err)
	}
	if took := time.Since(start); took > 10*ShutdownTimeout {
		t.Errorf("The stop took %v", took)
	}
}

func TestServeReportsThatItsListenerFailed(t *testing.T) {
	server, err := Listen("127.0.0.1:0", secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	if err := server.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), server.Address()) {
		t.Errorf("Got %v, want an error that names the address", err)
	}
}

func TestWhatAnybodyCanCauseIsNotLoggedByDefault(t *testing.T) {
	var output bytes.Buffer
	logger := errorLog{textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&output)))}
	for _, message := range []string{"http: TLS handshake error from 10.0.0.1:1: EOF\n", "http: panic serving 10.0.0.1:1: oops\n"} {
		if _, err := logger.Write([]byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	klog.Flush()
	if text := output.String(); strings.Contains(text, "handshake") || !strings.Contains(text, "oops") {
		t.Errorf("Logged: %s", text)
	}
}

// waitFor polls a condition until it is true.
func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(30 * time.Second)
	for !condition() {
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("Timed out waiting for %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAControllerIsReadyFromFilledCachesToItsStop(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	filled, watchdog := false, healthz.NamedCheck("leaderElection", func(*http.Request) error { return nil })
	handler := ControllerHealth(ctx, watchdog, func() bool { return filled })
	expect := func(when string, ready int) {
		t.Helper()
		if answer := get(t, handler, "/readyz", ""); answer.Code != ready {
			t.Errorf("%s, readiness is %d: %s", when, answer.Code, answer.Body)
		}
		if answer := get(t, handler, "/healthz", ""); answer.Code != http.StatusOK {
			t.Errorf("%s, health is %d: %s", when, answer.Code, answer.Body)
		}
	}
	expect("before the caches are filled", http.StatusInternalServerError)
	filled = true
	expect("with filled caches", http.StatusOK)
	stop()
	expect("while it stops", http.StatusInternalServerError)
}

func TestHealthReportsItsChecks(t *testing.T) {
	check := func(name, problem string) healthz.HealthChecker {
		return healthz.NamedCheck(name, func(*http.Request) error {
			if problem != "" {
				return errors.New(problem)
			}
			return nil
		})
	}
	well := healthHandler([]healthz.HealthChecker{check("leaderElection", "")}, []healthz.HealthChecker{check("caches", "")})
	filling := healthHandler([]healthz.HealthChecker{check("leaderElection", "")}, []healthz.HealthChecker{check("caches", "not filled")})
	stuck := healthHandler([]healthz.HealthChecker{check("leaderElection", "Lease is over")}, []healthz.HealthChecker{check("caches", "")})
	tests := []struct {
		what    string
		handler http.Handler
		path    string
		code    int
		says    []string
	}{
		{"alive", well, "/healthz", http.StatusOK, []string{"ok"}},
		{"ready", well, "/readyz", http.StatusOK, []string{"ok"}},
		{"alive, in detail", well, "/healthz?verbose", http.StatusOK, []string{"[+]ping ok", "[+]leaderElection ok"}},
		{"ready, in detail", well, "/readyz?verbose", http.StatusOK, []string{"[+]ping ok", "[+]caches ok"}},
		{"alive, though not ready", filling, "/healthz", http.StatusOK, []string{"ok"}},
		{"not ready, and which check", filling, "/readyz", http.StatusInternalServerError, []string{"[-]caches failed", "[+]ping ok"}},
		{"not ready, and why", filling, "/readyz/caches", http.StatusInternalServerError, []string{"not filled"}},
		{"a check left out", filling, "/readyz?exclude=caches", http.StatusOK, []string{"ok"}},
		{"stuck, and which check", stuck, "/healthz", http.StatusInternalServerError, []string{"[-]leaderElection failed"}},
		{"stuck, and why", stuck, "/healthz/leaderElection", http.StatusInternalServerError, []string{"Lease is over"}},
		{"ready by its own checks", stuck, "/readyz", http.StatusOK, []string{"ok"}},
		{"nothing else", well, "/metrics", http.StatusNotFound, nil},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			answer := get(t, test.handler, test.path, "")
			if answer.Code != test.code {
				t.Errorf("Got %d, want %d", answer.Code, test.code)
			}
			for _, text := range test.says {
				if !strings.Contains(answer.Body.String(), text) {
					t.Errorf("Got %q, want it to say %q", answer.Body, text)
				}
			}
		})
	}
}
