// SPDX-License-Identifier: Apache-2.0

// Calls: things outside the cluster that an owner stands for.

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
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
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
		f.api.Others = []*footest.Kind{(&rows.Row[footest.Object, *corev1.ConfigMap]{Kind: "ConfigMap", Resource: configMaps}).Untyped()}
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

func TestACallIsMadeOnceThePollSaysSo(t *testing.T) {
	testCalls(t, asCalled, world(footest.Foo("a")), func(f *fixture, a *authority) {
		defer f.start(2)()
		advance(time.Second)
		f.expectCalls(a, "do a 2")
		footest.ExpectEqual(f.t, "the finalizers", []string{entryFinalizer}, f.storedFoo("a").Finalizers)
		advance(time.Minute)
		ready := f.expectReady("a", "True Available of 1")
		footest.ExpectEqual(f.t, "the message", "entered as a-2", ready.Message)
		footest.ExpectEqual(f.t, "the report", "a-2", f.storedFoo("a").Status.Selector)
		f.expectEntered("True Available: entered as a-2")
		f.takeWrites()
		advance(pollEntry * 60)
		if polls := len(a.made()); polls < 54 || polls > 67 {
			f.t.Errorf("%d polls, not about 60", polls)
		}
		f.expectWrites()
		a.answers(saying("another", time.Time{}))
		advance(pollEntry * 11 / 10)
		footest.ExpectEqual(f.t, "the report", "another", f.storedFoo("a").Status.Selector)
		f.expectReady("a", "True Available of 1")
		f.expectWrites(writeStatus)
		a.answers(saying("refused", time.Time{}))
		advance(pollEntry * 11 / 10)
		f.expectReady("a", "False EntryFailed of 1")
	})
}

func TestAnAnswerStandsWhilePollsFail(t *testing.T) {
	for name, answer := range map[string]func(context.Context, string, *samplev1alpha1.Foo) (entry, error){
		"503 of the authority":      isDown,
		"context deadline exceeded": hangs,
		"panic: a bug":              func(context.Context, string, *samplev1alpha1.Foo) (entry, error) { panic("a bug") },
		"it has not returned in time": func() func(context.Context, string, *samplev1alpha1.Foo) (entry, error) {
			return func(_ context.Context, _ string, foo *samplev1alpha1.Foo) (entry, error) {
				<-time.After(24 * time.Hour) // whatever its context says
				return entry{Text: "late"}, nil
			}
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			runCalls(t, asCalled, func(f *fixture, a *authority) {
				a.answers(answer)
				advance(pollEntry * 12 / 10)
				f.expectReady("a", "True Available of 1")
				f.expectEntered("Unknown EntryFailed: Entry: the last call failed: " + name + "; the answer before stands")
				f.expectWrites(writeStatus)
				advance(time.Hour)
				f.expectWrites()
				footest.ExpectEqual(f.t, "the report", "a-2", f.storedFoo("a").Status.Selector)
				a.answers(nil)
				advance(25 * time.Hour)
				f.expectReady("a", "True Available of 1")
				f.expectEntered("True Available: entered as a-2")
			})
		})
	}
}

func TestAHangingAuthorityHoldsUpNoOther(t *testing.T) {
	var foos []runtime.Object
	for i := range 40 {
		foos = append(foos, footest.Foo(fmt.Sprint("hangs-", i), func(foo *samplev1alpha1.Foo) { foo.Namespace = fmt.Sprint("team-", i%5) }))
	}
	testCalls(t, asCalled, append(foos, footest.Foo("a")), func(f *fixture, a *authority) {
		a.answers(func(ctx context.Context, verb string, foo *samplev1alpha1.Foo) (entry, error) {
			if foo.Name != "a" {
				return hangs(ctx, verb, foo)
			}
			return entry{Text: "a"}, nil
		})
		defer f.start(2)()
		advance(10 * time.Second)
		f.expectReady("a", "True Available of 1")
		footest.ExpectEqual(f.t, "the children that wait for no answer", 41, f.count("create configmaps"))
	})
}

func TestAFailedFirstCall(t *testing.T) {
	testCalls(t, asCalled, world(footest.Foo("a")), func(f *fixture, a *authority) {
		a.answers(isDown)
		defer f.start(2)()
		advance(time.Minute)
		ready := f.expectReady("a", "False EntryFailed of 1")
		footest.ExpectEqual(f.t, "the message", "Entry: the last call failed: 503 of the authority", ready.Message)
		a.made()
		f.takeWrites()
		advance(time.Hour)
		if calls := len(a.made()); calls < 11 || calls > 20 {
			f.t.Errorf("%d calls in an hour", calls)
		}
		f.expectWrites()
		a.answers(nil)
		advance(6 * time.Minute)
		f.expectReady("a", "True Available of 1")
	})
}

func TestAnAnswerThatExpires(t *testing.T) {
	noPoll := func(call *plan.Call[*samplev1alpha1.Foo, entry]) { call.Poll = 0 }
	expires := footest.Now.Add(7 * 24 * time.Hour)
	testCalls(t, noPoll, world(footest.Foo("a")), func(f *fixture, a *authority) {
		a.answers(saying("week-1", expires))
		defer f.start(2)()
		advance(6*24*time.Hour - time.Second)
		f.expectCalls(a, "do a 2")
		a.answers(isDown)
		advance(23 * time.Hour)
		f.expectReady("a", "True Available of 1")
		advance(time.Hour + time.Minute)
		ready := f.expectReady("a", "False EntryFailed of 1")
		footest.ExpectEqual(f.t, "the message", "Entry has expired at 2000-01-08T00:00:00Z: entered as week-1", ready.Message)
		a.made()
		a.answers(saying("week-1", expires)) // which stays due
		advance(6 * time.Minute)
		a.made()
		advance(time.Hour)
		if calls := len(a.made()); calls < 59 || calls > 61 {
			f.t.Errorf("%d calls in an hour for an answer that has expired", calls)
		}
		a.answers(saying("week-2", expires.Add(7*24*time.Hour)))
		advance(2 * time.Minute)
		f.expectReady("a", "True Available of 1")
		a.made()
		advance(24 * time.Hour)
		f.expectCalls(a)
	})
}

func TestARestartCallsNobodyInABurst(t *testing.T) {
	var foos []runtime.Object
	for i := range 100 {
		foos = append(foos, footest.Foo(fmt.Sprint("a-", i)))
	}
	testCalls(t, asCalled, foos, func(f *fixture, a *authority) {
		stop := f.start(2)
		advance(2 * time.Minute)
		stop()
		footest.ExpectEqual(f.t, "the first calls", 100, len(a.made()))
		f.takeWrites()
		defer f.restart()()
		advance(time.Minute)
		if calls := len(a.made()); calls < 1 || calls > 30 {
			f.t.Errorf("%d calls in the first of ten minutes", calls)
		}
		f.expectWrites()
		advance(pollEntry)
		if calls := len(a.made()); calls < 70 || calls > 110 {
			f.t.Errorf("%d calls in ten minutes", calls)
		}
		f.expectReady("a-1", "True Available of 1")
	})
}

// An authority that is down when the program starts again gets each call once within a minute.
func TestARestartWhileTheAuthorityIsDown(t *testing.T) {
	var foos []runtime.Object
	for i := range 100 {
		foos = append(foos, footest.Foo(fmt.Sprint("a-", i)))
	}
	testCalls(t, asCalled, foos, func(f *fixture, a *authority) {
		a.answers(isDown)
		stop := f.start(2)
		advance(time.Hour)
		stop()
		a.made()
		a.answers(nil)
		defer f.restart()()
		advance(6 * time.Second)
		if calls := len(a.made()); calls > 30 {
			f.t.Errorf("%d calls in the first tenth of a minute", calls)
		}
		advance(time.Minute)
		f.expectReady("a-1", "True Available of 1")
	})
}

func TestAnAnswerToAnotherSpecIsNoAnswer(t *testing.T) {
	runCalls(t, asCalled, func(f *fixture, a *authority) {
		ends := make(chan struct{})
		a.answers(func(_ context.Context, _ string, foo *samplev1alpha1.Foo) (entry, error) {
			if *foo.Spec.Replicas == 3 {
				<-ends
			}
			return entry{Text: fmt.Sprint("for ", *foo.Spec.Replicas)}, nil
		})
		f.respec(scaleTo(3))
		f.expectCalls(a, "do a 3")
		ready := f.expectReady("a", "False Progressing of 2")
		footest.ExpectEqual(t, "the message", "Entry: waiting for the answer to the newest spec", ready.Message)
		footest.ExpectEqual(t, "the report", "", f.storedFoo("a").Status.Selector)
		f.respec(scaleTo(4))
		f.expectReady("a", "False Progressing of 3")
		close(ends)
		advance(time.Minute)
		f.expectCalls(a, "do a 4")
		f.expectReady("a", "True Available of 3")
		footest.ExpectEqual(t, "the report", "for 4", f.storedFoo("a").Status.Selector)
	})
}

func (f *fixture) requestSync(value string) {
	f.t.Helper()
	foo := f.storedFoo("a")
	metav1.SetMetaDataAnnotation(&foo.ObjectMeta, f.kind.SyncRequested(), value)
	f.put(foo)
	advance(time.Second)
}

func TestASyncThatIsAskedForCallsAtOnce(t *testing.T) {
	runCalls(t, asCalled, func(f *fixture, a *authority) {
		f.requestSync("1")
		f.expectCalls(a, "do a 2")
		footest.ExpectEqual(t, "the request that the status answers", "1", f.storedFoo("a").Status.LastHandledSync)
		f.expectReady("a", "True Available of 1")
		f.takeWrites()
		a.answers(hangs)
		f.requestSync("2")
		f.expectCalls(a, "do a 2")
		f.expectReady("a", "True Available of 1")
		footest.ExpectEqual(t, "the request that the status answers during the call", "1", f.storedFoo("a").Status.LastHandledSync)
		f.requestSync("3") // in place of the one that hangs
		f.expectCalls(a, "do a 2")
		a.answers(isDown)
		advance(31 * time.Second)
		footest.ExpectEqual(t, "the request that the status answers after a failure", "3", f.storedFoo("a").Status.LastHandledSync)
		advance(30 * time.Minute)
		a.made()
		a.answers(saying("new", time.Time{}))
		f.requestSync("4")
		f.expectCalls(a, "do a 2")
		advance(time.Minute)
		footest.ExpectEqual(t, "the report", "new", f.storedFoo("a").Status.Selector)
	})
}

func TestASuspendedOwnerIsNotCalledFor(t *testing.T) {
	runCalls(t, asCalled, func(f *fixture, a *authority) {
		f.respec(func(spec *samplev1alpha1.FooSpec) { spec.Suspend = new(true) })
		advance(2 * time.Hour)
		f.expectCalls(a)
		f.expectReady("a", "False Suspended of 2")
		f.respec(func(spec *samplev1alpha1.FooSpec) { spec.Suspend = nil })
		advance(time.Minute)
		f.expectCalls(a, "do a 2")
		f.expectReady("a", "True Available of 3")
		f.respec(func(spec *samplev1alpha1.FooSpec) { spec.Suspend = new(true) })
		f.beginDeletion("a")
		f.expectCalls(a, "undo a 2")
		footest.ExpectEqual(t, "whether it is gone", true, f.isGone("a"))
	})
}

func TestAnAnswerMayHoldBackTheChildren(t *testing.T) {
	blocks := func(call *plan.Call[*samplev1alpha1.Foo, entry]) { call.Blocks = true }
	testCalls(t, blocks, world(footest.Foo("a")), func(f *fixture, a *authority) {
		a.answers(saying("refused", time.Time{}))
		defer f.start(2)()
		advance(time.Minute)
		f.expectShards("the entry is refused")
		f.expectReady("a", "False EntryFailed of 1")
		a.answers(nil)
		advance(pollEntry * 11 / 10)
		f.expectShards("the entry is made", "a")
	})
}

// A call without Report is not repeated after a restart if the status says Ready.
func TestACallWithoutAReport(t *testing.T) {
	once := func(call *plan.Call[*samplev1alpha1.Foo, entry]) {
		call.Report, call.Recall, call.Poll, call.Judge = nil, nil, 0, nil
	}
	testCalls(t, once, world(footest.Foo("a")), func(f *fixture, a *authority) {
		stop := f.start(2)
		advance(time.Minute)
		stop()
		f.expectCalls(a, "do a 2")
		f.expectReady("a", "True Available of 1")
		f.takeWrites()
		defer f.restart()()
		advance(24 * time.Hour)
		f.expectCalls(a)
		f.expectWrites()
	})
}
