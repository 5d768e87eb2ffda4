// SPDX-License-Identifier: Apache-2.0

// A controller for one namespace.

package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

func TestAControllerForOneNamespaceRequestsNothingElse(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	var mu sync.Mutex
	inside, outside := 0, []string(nil)
	gate := newGate(t, func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(r.URL.Path, "/namespaces/"+ns.name+"/") {
			inside++
		} else {
			outside = append(outside, r.Method+" "+r.URL.Path)
		}
		return false
	})
	p := startController(t, "-kubeconfig="+gate.kubeconfig, "-namespace="+ns.name)
	ns.createReadyFoo(t, newFoo("inside"))
	p.stop(t)

	mu.Lock()
	defer mu.Unlock()
	if len(outside) > 0 || inside == 0 {
		t.Errorf("The controller sent %d requests in its namespace, and others: %v", inside, outside)
	}
}
