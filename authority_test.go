// SPDX-License-Identifier: Apache-2.0

// The authority of the tests: something outside the cluster, which answers calls.

package main

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
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

const (
	entryFinalizer = "example.com/entry"
	patchFoo       = "patch foos"
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
	f.t.Helper()
	footest.ExpectEqual(f.t, "the calls of the authority", want, of.made())
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
func testCalls(t *testing.T, change func(call *plan.Call[*samplev1alpha1.Foo, entry]), foos []runtime.Object, body func(f *fixture, a *authority)) {
	t.Helper()
	a := &authority{}
	call := a.entries()
	change(&call)
	testCallsOf(t, a, entryFinalizer, []table.Row[*samplev1alpha1.Foo]{table.Calls(call)}, foos, body)
}

func testCallsOf(t *testing.T, a *authority, finalizer string, calls []table.Row[*samplev1alpha1.Foo], foos []runtime.Object, body func(f *fixture, a *authority)) {
	t.Helper()
	testWith(t, func(f *fixture) {
		f.declare = func(clients kinds.Clients) *table.Kind {
			child := table.Owns(shards(func(row *plan.Row[*samplev1alpha1.Foo, *corev1.ConfigMap]) {
				row.Names = func(foo *samplev1alpha1.Foo) []string { return []string{foo.Name} }
				row.Judge, row.Report, row.Serves = nil, nil, nil
			}), clients.KubeInformers.Core().V1().ConfigMaps().Informer(), clients.Kube.CoreV1().ConfigMaps)
			return table.Of(plan.Kind{Name: "Foo", Resource: footest.FoosResource, Finalizer: finalizer},
				clients.CustomInformers.Samplecontroller().V1alpha1().Foos().Informer(), clients.Custom.SamplecontrollerV1alpha1().Foos, append(calls, child)...)
		}
	}, foos, func(f *fixture) { body(f, a) })
}

func asCalled(*plan.Call[*samplev1alpha1.Foo, entry]) {}

// runCalls is like testCalls, with running workers, and with the Foo "a", which has settled.
func runCalls(t *testing.T, change func(call *plan.Call[*samplev1alpha1.Foo, entry]), body func(f *fixture, a *authority)) {
	t.Helper()
	testCalls(t, change, world(footest.Foo("a")), func(f *fixture, a *authority) {
		defer f.start(2)()
		advance(time.Minute)
		f.expectCalls(a, "do a 2")
		f.expectReady("a", "True Available of 1")
		f.takeWrites()
		body(f, a)
	})
}

// restart starts another process after the last, which has stopped.
func (f *fixture) restart() (stop func()) {
	f.t.Helper()
	f.stopInformers()
	ctx, cancel := context.WithCancel(klog.NewContext(f.t.Context(), klog.FromContext(f.ctx)))
	kubeInformers, fooInformers := f.control(footest.FooOwner, clock.RealClock{})
	f.ctx = ctx
	var err error
	f.handlersSynced, err = f.addEventHandlers(ctx)
	footest.Must(f.t, err)
	kubeInformers.StartWithContext(ctx)
	fooInformers.StartWithContext(ctx)
	f.stopInformers = func() {
		cancel()
		kubeInformers.Shutdown()
		fooInformers.Shutdown()
	}
	if !cache.WaitFor(ctx, "", f.handlersSynced...) {
		f.t.Fatal("the caches have not synced")
	}
	return f.start(2)
}

func (f *fixture) expectEntered(want string) {
	f.t.Helper()
	got := "none"
	if own := meta.FindStatusCondition(f.storedFoo("a").Status.Conditions, "Entered"); own != nil {
		got = fmt.Sprintf("%s %s: %s", own.Status, own.Reason, own.Message)
	}
	footest.ExpectEqual(f.t, "the condition Entered", want, got)
}

func (f *fixture) requestSync(value string) {
	f.t.Helper()
	foo := f.storedFoo("a")
	metav1.SetMetaDataAnnotation(&foo.ObjectMeta, f.kind.SyncRequested(), value)
	f.put(foo)
	advance(time.Second)
}
