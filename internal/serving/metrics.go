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

package serving

import (
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
)

// MetricsHandler answers /metrics by a handler and, with profiling,
// /debug/pprof/ as net/http/pprof does; each only to whom the gate lets
// through. Of other paths it says 404 without asking the API server anything.
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

// profiles are the handlers below /debug/pprof/. Each path is named, for a
// right is asked for by path: any other would be a question that anybody with a
// token could make the controller ask.
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
