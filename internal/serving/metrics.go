// SPDX-License-Identifier: Apache-2.0

// The handler of /metrics and of the profiles, behind the gate.

package serving

import (
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
)

// MetricsHandler serves /metrics with a handler and, with profiling, /debug/pprof/ as
// net/http/pprof does, to requests that the gate lets through. It answers other paths
// with 404 without asking the API server.
func MetricsHandler(gate *Gate, metrics http.Handler, profiling bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", gate.Guard(metrics))
	if profiling {
		for path, handler := range profiles() {
			mux.Handle("GET /debug/pprof/"+path, gate.Guard(handler))
		}
	}
	return mux
}

// profiles returns the handlers below /debug/pprof/ by path. There is one for each path
// instead of one for all, because the gate asks for the permission by path: otherwise
// anybody with a token could cause reviews of any number of paths.
func profiles() map[string]http.Handler {
	handlers := map[string]http.Handler{
		"{$}":     http.HandlerFunc(pprof.Index),
		"cmdline": http.HandlerFunc(pprof.Cmdline),
		"profile": http.HandlerFunc(pprof.Profile),
		"symbol":  http.HandlerFunc(pprof.Symbol),
		"trace":   http.HandlerFunc(pprof.Trace),
	}
	for _, profile := range runtimepprof.Profiles() {
		handlers[profile.Name()] = pprof.Handler(profile.Name())
	}
	return handlers
}
