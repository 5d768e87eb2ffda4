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
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

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
			client := tls.Client(n.dial("10.0.0.1"), &tls.Config{
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
		if code := ask(t, n.dial("10.0.0.1"), "/", "p"); code != http.StatusBadRequest {
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
			client := n.dial("10.0.0.1")
			_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
			synctest.Wait()
			start := time.Now()
			n.stop()
			synctest.Wait()
			if n.isOpen() {
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
