// SPDX-License-Identifier: Apache-2.0

// The handlers of /healthz and /readyz.

package serving

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apiserver/pkg/server/healthz"
)

// ControllerHealth serves a controller's health. The controller is alive unless it still
// leads after its Lease has expired, which the watchdog reports. It is ready from when
// its caches have synced, leader or not, until ctx is done.
func ControllerHealth(ctx context.Context, watchdog healthz.HealthChecker, filled func() bool) http.Handler {
	caches := healthz.NamedCheck("caches", func(*http.Request) error {
		if !filled() {
			return errors.New("the caches are not filled yet; the log says what the controller waits for")
		}
		return nil
	})
	return healthHandler([]healthz.HealthChecker{watchdog}, []healthz.HealthChecker{caches, healthz.NewShutdownHealthz(ctx.Done())})
}

// healthHandler serves /healthz with the checks in alive and /readyz with those in ready:
// 200 if all pass, else 500 and the names of the checks that failed. As in Kubernetes'
// own components, ?verbose lists the checks, ?exclude=NAME leaves one out, and
// /healthz/NAME or /readyz/NAME runs a single check and says why it fails.
func healthHandler(alive, ready []healthz.HealthChecker) http.Handler {
	mux := http.NewServeMux()
	healthz.InstallHandler(mux, append([]healthz.HealthChecker{healthz.PingHealthz}, alive...)...)
	healthz.InstallReadyzHandler(mux, append([]healthz.HealthChecker{healthz.PingHealthz}, ready...)...)
	return mux
}
