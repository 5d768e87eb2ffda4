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
