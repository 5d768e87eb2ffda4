// SPDX-License-Identifier: Apache-2.0

// Helpers of the tests of the contract: recorded requests, finalizers, and waits.

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// hold is a finalizer that keeps a deleted object until the test removes it.
const hold = "e2e.samplecontroller.k8s.io/hold"

const (
	heldPatch     = `{"metadata":{"finalizers":["` + hold + `"]}}`
	releasedPatch = `{"metadata":{"finalizers":null}}`
)

// requests records the requests of one controller.
type requests struct {
	mu   sync.Mutex
	seen []string
}

// startRecorded runs the controller on the namespace and records its requests.
func (ns *namespace) startRecorded(t *testing.T, environment []string, flags ...string) (*process, *requests) {
	t.Helper()
	sent := &requests{}
	gate := newGateFor(t, ns.in.account, func(r *http.Request) bool {
		sent.mu.Lock()
		defer sent.mu.Unlock()
		sent.seen = append(sent.seen, r.Method+" "+r.URL.RequestURI())
		return false
	})
	flags = append([]string{"-kubeconfig=" + gate.kubeconfig, "-namespace=" + ns.name}, flags...)
	return startControllerIn(t, environment, flags...), sent
}

// count returns the number of requests with a method and a text in their URL.
func (r *requests) count(method, text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := 0
	for _, request := range r.seen {
		if strings.HasPrefix(request, method+" ") && strings.Contains(request, text) {
			count++
		}
	}
	return count
}

// writes returns the number of requests that write objects of a resource.
func (r *requests) writes(resource string) int {
	count := 0
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		count += r.count(method, "/"+resource)
	}
	return count
}

// awaitResyncs waits for a number of resyncs. The controller needs -resync=1s -v=4.
func (p *process) awaitResyncs(t *testing.T, times int) {
	t.Helper()
	const resynced = "Forcing resync"
	// Each of the two caches logs its resyncs.
	p.awaitLog(t, resynced, p.log.Count(resynced)+2*times)
}

// awaitConflict waits until a Foo reports that its child's name is taken.
func (ns *namespace) awaitConflict(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	return awaitOne(t, "Foo "+name+" reports the conflict", ns.foos(), name, isConflicted)
}

// awaitReason waits until a Foo reports Ready=False with a reason.
func (ns *namespace) awaitReason(t *testing.T, name, reason string) *samplev1alpha1.Foo {
	t.Helper()
	return awaitOne(t, "Foo "+name+" reports "+reason, ns.foos(), name, func(foo *samplev1alpha1.Foo) error {
		return hasReady(foo, metav1.ConditionFalse, reason)
	})
}

// awaitOnly waits until a Foo controls the child of a name and no other.
func (ns *namespace) awaitOnly(t *testing.T, foo *samplev1alpha1.Foo, name string) {
	t.Helper()
	want := fmt.Sprintf("Foo %s controls the child %s and no other", foo.Name, name)
	awaitList(t, want, ns.children(), metav1.ListOptions{}, func(list *childList) error {
		var has []string
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], foo) {
				has = append(has, list.Items[i].GetName())
			}
		}
		if len(has) != 1 || has[0] != name {
			return fmt.Errorf("it controls %v", has)
		}
		return nil
	})
}

// deleteFoo deletes a Foo with a propagation policy.
func (ns *namespace) deleteFoo(t *testing.T, name string, how metav1.DeletionPropagation) {
	t.Helper()
	if err := ns.foos().Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
		t.Fatalf("Deleting Foo %s: %v", name, err)
	}
}

// ownedBy returns a patch that makes an object the only owner and the controller.
func ownedBy(group string, name string, uid string) string {
	return fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":"Foo","name":%q,"uid":%q,"controller":true}]}}`,
		group+"/"+samplev1alpha1.SchemeGroupVersion.Version, name, uid)
}
