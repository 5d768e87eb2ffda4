// SPDX-License-Identifier: Apache-2.0

// The authority of the tests: something outside the cluster, which answers calls.

package looptest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

const (
	entryFinalizer = "example.com/entry"
	patchFoo       = "patch foos"
	writeStatus    = "update foos/status"
	pollEntry      = 10 * time.Minute
)

// entry is what the authority answers. The status has it in its selector and in a number.
type entry struct {
	Text    string
	Expires time.Time
}

// authority is a service outside the cluster. It lists its calls as "do a 2 at 1m0s", with the number of replicas.
type authority struct {
	mu    sync.Mutex
	calls []string
	// answer answers a call; nil means an entry with the number of replicas.
	answer func(ctx context.Context, verb string, foo *samplev1alpha1.Foo) (entry, error)
}

func (a *authority) call(ctx context.Context, verb string, foo *samplev1alpha1.Foo) (entry, error) {
	a.mu.Lock()
	a.calls = append(a.calls, fmt.Sprintf("%s %s %d", verb, foo.Name, *foo.Spec.Replicas))
	answer := a.answer
	a.mu.Unlock()
	if answer == nil {
		return entry{Text: fmt.Sprintf("%s-%d", foo.Name, *foo.Spec.Replicas)}, nil
	}
	return answer(ctx, verb, foo)
}

func (a *authority) answers(answer func(ctx context.Context, verb string, foo *samplev1alpha1.Foo) (entry, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

// made returns the calls since its last call, in order.
func (a *authority) made() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	made := a.calls
	a.calls = nil
	slices.Sort(made)
	return made
}

func (f *fixture) expectCalls(of *authority, want ...string) {
	f.T.Helper()
	footest.ExpectEqual(f.T, "the calls of the authority", want, of.made())
}

func isDown(context.Context, string, *samplev1alpha1.Foo) (entry, error) {
	return entry{}, errors.New("503 of the authority")
}

func hangs(ctx context.Context, _ string, _ *samplev1alpha1.Foo) (entry, error) {
	<-ctx.Done()
	return entry{}, ctx.Err()
}

func saying(text string, expires time.Time) func(context.Context, string, *samplev1alpha1.Foo) (entry, error) {
	return func(context.Context, string, *samplev1alpha1.Foo) (entry, error) { return entry{text, expires}, nil }
}

// entries declares a call of the authority.
func (a *authority) entries() plan.Call[*samplev1alpha1.Foo, entry] {
	return plan.Call[*samplev1alpha1.Foo, entry]{
		Kind: "Entry", Poll: pollEntry, Condition: "Entered",
		Do: func(ctx context.Context, foo *samplev1alpha1.Foo) (entry, error) { return a.call(ctx, "do", foo) },
		Undo: func(ctx context.Context, foo *samplev1alpha1.Foo) error {
			_, err := a.call(ctx, "undo", foo)
			return err
		},
		Judge: func(is entry) plan.Readiness {
			if is.Text == "refused" {
				return plan.Stalled("EntryFailed", "The authority refuses the entry")
			}
			ready := plan.Ready("entered as %s", is.Text)
			if is.Expires.IsZero() {
				return ready
			}
			return ready.ComeAgain(is.Expires.Add(-24 * time.Hour)).Expires(is.Expires)
		},
		Report: func(foo *samplev1alpha1.Foo, is entry) {
			foo.Status.Selector = is.Text
			if !is.Expires.IsZero() {
				foo.Status.Selector += " " + is.Expires.UTC().Format(time.RFC3339)
			}
		},
		Recall: func(foo *samplev1alpha1.Foo) (is entry) {
			text, expires, _ := strings.Cut(foo.Status.Selector, " ")
			is.Text = text
			if at, err := time.Parse(time.RFC3339, expires); err == nil {
				is.Expires = at
			}
			return is
		},
	}
}

// testCalls runs a test of a Controller of Foos with this call and a ConfigMap.
func (l Loop) testCalls(t *testing.T, change func(call *plan.Call[*samplev1alpha1.Foo, entry]), foos []runtime.Object, body func(f *fixture, a *authority)) {
	t.Helper()
	a := &authority{}
	call := a.entries()
	change(&call)
	l.test(t, foosWith(plan.Kind{Finalizer: entryFinalizer}, func(clients kinds.Clients) []table.Row[*samplev1alpha1.Foo] {
		child := shards(func(row *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]) {
			row.Names = func(foo *samplev1alpha1.Foo) []string { return []string{foo.Name} }
			row.Judge, row.Report, row.Serves = nil, nil, nil
		})
		return []table.Row[*samplev1alpha1.Foo]{table.Calls(call), configMapsOf(clients, child)}
	}), foos, func(f *fixture) { body(f, a) })
}

func asCalled(*plan.Call[*samplev1alpha1.Foo, entry]) {}

// runCalls is like testCalls, with running workers, and with the Foo "a", which has settled.
func (l Loop) runCalls(t *testing.T, change func(call *plan.Call[*samplev1alpha1.Foo, entry]), body func(f *fixture, a *authority)) {
	t.Helper()
	l.testCalls(t, change, world(footest.Foo("a")), func(f *fixture, a *authority) {
		defer f.start()()
		advance(time.Minute)
		f.expectCalls(a, "do a 2")
		f.ExpectReady("a", "True Available of 1")
		f.TakeWrites()
		body(f, a)
	})
}

func (f *fixture) expectEntered(want string) {
	f.T.Helper()
	got := "none"
	if own := meta.FindStatusCondition(f.StoredFoo("a").Status.Conditions, "Entered"); own != nil {
		got = fmt.Sprintf("%s %s: %s", own.Status, own.Reason, own.Message)
	}
	footest.ExpectEqual(f.T, "the condition Entered", want, got)
}

func (f *fixture) requestSync(value string) {
	f.T.Helper()
	foo := f.StoredFoo("a")
	metav1.SetMetaDataAnnotation(&foo.ObjectMeta, f.kind.SyncRequested(), value)
	f.Put(foo)
	advance(time.Second)
}
