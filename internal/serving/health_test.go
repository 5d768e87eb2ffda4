// SPDX-License-Identifier: Apache-2.0

// Tests of /healthz and /readyz.

package serving

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/server/healthz"
)

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
