// SPDX-License-Identifier: Apache-2.0

// Tests of what one tenant can do to the others, to the metrics and to the log, of calls that
// hang, of stops, and of this program's own flags.

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"sigs.k8s.io/yaml"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/process/election"
	"example.com/sample-controller/pkg/process/serving"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

// callsTake makes each call of a verb on children in the namespace of footest take some time.
func (f *fixture) callsTake(verb string, took time.Duration) {
	f.On(verb, children, func(action clienttesting.Action) error {
		if action.GetNamespace() == footest.Namespace {
			<-time.After(took)
		}
		return nil
	})
}

// Calls for children in the namespace of footest hang. Only -workers syncs run at the same time,
// and another namespace, whose Foos come while all calls hang and when they end, waits for none.
func TestCallsThatHangDelayNoOtherNamespace(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			var foos []runtime.Object
			for i := range 20 {
				foos = append(foos, footest.Foo(fmt.Sprint("hangs-", i), footest.WithChildName(fmt.Sprint("hangs-", i))))
			}
			test(t, foos, func(f *fixture) {
				create, served := f.primary.row.Create, map[string]time.Time{}
				var calls atomic.Int32
				f.primary.row.Create = func(ctx context.Context, child plan.Object, options metav1.CreateOptions) (plan.Object, error) {
					if child.GetNamespace() == footest.Namespace {
						if n := calls.Add(1); n > 4 {
							t.Errorf("%d calls of one namespace hang", n)
						}
						defer calls.Add(-1)
						<-ctx.Done()
						return nil, ctx.Err()
					}
					served[child.GetName()] = time.Now()
					return create(ctx, child, options)
				}
				defer f.start(workers)()
				for i, at := range []time.Duration{time.Second, 29 * time.Second, 50 * time.Millisecond, time.Minute} {
					advance(at)
					name := fmt.Sprint("quick-", i)
					other, asked := footest.Foo(name, footest.WithChildName(name)), time.Now()
					other.Namespace = "team-b"
					f.Put(other)
					advance(250 * time.Millisecond)
					if took := served[name].Sub(asked); took < 0 || took > 200*time.Millisecond {
						t.Errorf("after another %v, a Foo of the other namespace of %v was synced at %v", at, asked, served[name])
					}
				}
			})
		})
	}
}

// Users who may create children choose the Foo that controls them: any number of children are
// obsolete. Earlier, another tenant waited for all of them: 1 s here.
func TestObsoleteChildrenDoNotDelayAnotherNamespace(t *testing.T) {
	var obsolete []runtime.Object
	for i := range 200 {
		obsolete = append(obsolete, footest.Child("a", footest.Named(fmt.Sprintf("old-%d", i))))
	}
	test(t, atRest(obsolete...), func(f *fixture) {
		other := footest.Foo("b", footest.WithChildName("b"))
		other.Namespace = "team-b"
		var served time.Time
		f.On("create", children, func(action clienttesting.Action) error {
			if action.GetNamespace() == other.Namespace {
				served = time.Now()
			}
			return nil
		})
		f.callsTake("get", 5*time.Millisecond)
		defer f.start(1)()
		advance(time.Millisecond)
		asked := time.Now()
		f.Put(other)
		advance(time.Minute)
		if took := served.Sub(asked); took < 0 || took > 100*time.Millisecond {
			t.Errorf("the other tenant's Foo, of %v, got its child at %v", asked, served)
		}
		if left := len(f.primary.row.Cache.List()); left != 2 {
			t.Errorf("%d children are left, not 2", left)
		}
	})
}

// waiting returns Foos that want a name that "b" has, as their statuses say.
func waiting(count int) []runtime.Object {
	ready := footest.Ready(metav1.ConditionFalse, conflict, footest.ConflictWithB, footest.Earlier)
	status := samplev1alpha1.FooStatus{ObservedGeneration: 1, Conditions: footest.Stalled(ready)}
	var foos []runtime.Object
	for i := range count {
		foos = append(foos, footest.Foo(fmt.Sprintf("w%d", i), footest.WithStatus(status)))
	}
	return foos
}

// Earlier, a status of that child queued all of them: 10,000 keys and 100 ms of syncs.
func TestAStatusOfATakenChildConcernsNobodyWhoWaitsForItsName(t *testing.T) {
	test(t, world(footest.Child("b")), func(f *fixture) {
		for _, foo := range waiting(10_000) {
			footest.Must(t, f.kind.Owners.Cache.Add(foo.(*samplev1alpha1.Foo)))
		}
		f.drainQueue()
		f.primary.updated(footest.Child("b"), footest.Child("b", footest.AtVersion("21")))
		f.expectQueued(1, "a status") // its own Foo
		f.primary.updated(footest.Child("b", footest.AtVersion("21")), footest.Child("c", footest.AtVersion("22")))
		if n := f.queue.Len(); n > 2*maxAsking+2 { // for both states
			t.Errorf("a change of the owner queues %d Foos", n)
		}
	})
}

// Earlier, each of these requests caused a write for each Foo.
func TestWhoHasANameIsNotWrittenWithEachChange(t *testing.T) {
	foos := waiting(50)
	testRunning(t, append(foos, footest.Child("b")), func(f *fixture) {
		advance(time.Second)
		f.ExpectWrites()
		for i := range 20 {
			f.change("web", func(child footest.Object) {
				owners := child.GetOwnerReferences()
				owners[0].Name = fmt.Sprintf("nobody-%d", i)
				child.SetOwnerReferences(owners)
			})
			advance(100 * time.Millisecond)
		}
		advance(time.Minute)
		for i := range foos {
			f.resync(fmt.Sprintf("w%d", i))
		}
		advance(time.Minute)
		footest.ExpectEqual(t, "the number of statuses that were written", len(foos), f.Count(writeStatus))
	})
}

// countOf returns the metric that counts a write, such as createChild. A patch counts as an
// update.
func countOf(write string, count int) string {
	verb, resource, _ := strings.Cut(strings.Replace(write, "patch ", "update ", 1), " ")
	return fmt.Sprintf(`sample_controller_writes_total{resource=%q,verb=%q} %d`, resource, verb, count)
}

// The failures of a tenant's Foos must not fill the log. Earlier, 10,000 Foos that a quota
// refuses logged 33 lines per second.
func TestAFailureThatRepeatsIsLoggedOnceAnHour(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.Verbosity(0), ktesting.BufferLogs(true)))
		f.ctx = klog.NewContext(f.ctx, logger)
		log := logger.GetSink().(ktesting.Underlier).GetBuffer()
		f.Refuse("create", children, serverFails)
		first := f.Refuse("create", children, quotaExceeded)
		defer f.start(1)()
		expect := func(after time.Duration, want int) {
			t.Helper()
			advance(after)
			if lines := strings.Count(log.String(), "Sync failed"); lines != want {
				t.Errorf("%v later there are %d lines, not %d:\n%s", after, lines, want, log)
			}
		}
		expect(50*time.Minute, 1)
		first.Over.Store(true)
		expect(55*time.Minute, 2) // the last attempt with the first cause came after 47 minutes
		expect(15*time.Minute, 3) // an hour after the second cause
	})
}

func TestAFooThatGoesDuringItsSyncIsForgotten(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.On("update", "foos", func(clienttesting.Action) error {
			f.DeleteFoo("a")
			<-time.After(time.Second) // so that the event is handled before the response to the write
			return fooGone
		})
		defer f.start(2)()
		advance(time.Minute)
		f.ExpectWrites(createChild, writeStatus)
		f.expectForgotten("a")
	})
}

func TestADeletedFooHoldsUpNoOther(t *testing.T) {
	test(t, atRest(), func(f *fixture) {
		key := footest.KeyOf(settledFoo())
		f.rollouts.Limit = 1
		f.rollouts.Begin(key)
		for range 4 { // one more than are written at once
			f.replaced.Observe(settledFoo())
		}
		f.DeleteFoo("a")
		advance(0)
		footest.Must(t, f.sync())
		if wait := f.rollouts.Begin(footest.KeyOf(footest.Foo("b"))); wait > 0 {
			t.Errorf("the rollout of another Foo waits for %s", wait)
		}
		if wait := f.replaced.Wait(settledFoo()); wait > 0 {
			t.Errorf("a status of the next Foo waits for %s", wait)
		}
	})
}

// A change of a Foo in its back-off waits for the next sync. During a sync that has already
// read the Foo, there may be no next one.
func TestAChangeDuringASyncIsSyncedAlthoughTheFooIsInItsBackOff(t *testing.T) {
	test(t, atRest(), func(f *fixture) {
		foo := f.cachedFoo("a")
		known := f.known.Of(foo)
		known.ObserveCall(foo, fooModified)
		f.known.Keep(footest.KeyOf(foo), known)
		f.FailTimes(1, "get", "foos", apierrors.NewForbidden(footest.FoosResource.GroupResource(), "a", nil))
		f.queue.Add(footest.KeyOf(foo))
		f.processNextWorkItem(f.ctx)
		f.On("get", "foos", func(clienttesting.Action) error {
			changed := f.StoredFoo("a")
			changed.Status.Conditions[0].Reason = "OfAnother"
			f.Put(changed)
			advance(time.Millisecond)
			return nil
		})
		f.queue.Add(footest.KeyOf(foo))
		f.processNextWorkItem(f.ctx)
		f.ExpectWrites()
		if f.queue.Len() == 0 {
			t.Error("the change was not queued")
		}
	})
}

// A conflict without a reason must not cause live reads forever, if there is no longer a status to write.
func TestFooWithTheLiveVersionIsReadLiveOnce(t *testing.T) {
	test(t, world(settledFoo(), footest.Child("a", footest.Terminating)), func(f *fixture) {
		f.FailTimes(1, "update", "foos", fooModified)
		defer f.start(2)()
		advance(0)
		f.Put(footest.Child("a"))
		advance(time.Minute)
		f.ExpectWrites(writeStatus)
		f.expectForgotten("a")
	})
}

// hang makes each creation of a child take until release is closed or the call is canceled,
// which fake clientsets don't notice.
func (f *fixture) hang() (release chan struct{}, cut *atomic.Int32) {
	release, cut = make(chan struct{}), &atomic.Int32{}
	f.primary.row.Create = func(ctx context.Context, _ plan.Object, _ metav1.CreateOptions) (plan.Object, error) {
		select {
		case <-release:
			return nil, serverFails
		case <-ctx.Done():
			cut.Add(1)
			return nil, ctx.Err()
		}
	}
	return release, cut
}

// During a call, the Lease is lost or the controller is stopped.
func TestWhatBecomesOfACallUnderWay(t *testing.T) {
	for name, row := range map[string]struct {
		end func(stop, lose context.CancelFunc)
		cut bool
	}{
		"the Lease is lost": {func(_, lose context.CancelFunc) { lose() }, true},
		"a stop":            {func(stop, _ context.CancelFunc) { stop() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("b"))), func(f *fixture) {
				release, cut := f.hang()
				ctx, stop := context.WithCancel(f.ctx)
				leaseCtx, lose := context.WithCancel(f.ctx)
				stopped := false
				go func() {
					f.runWorkers(ctx, leaseCtx, 1, f.handlersSynced)
					stopped = true
				}()
				synctest.Wait()
				row.end(stop, lose)
				synctest.Wait()
				if isCut := cut.Load() > 0; isCut != row.cut || stopped != row.cut {
					t.Errorf("the call was cut off: %v, and the controller has stopped: %v", isCut, stopped)
				}
				close(release)
				synctest.Wait()
				stop()
				lose()
				if !stopped || !row.cut && f.Count(writeStatus) != 1 { // not for the other Foo
					t.Errorf("it has stopped: %v, after %v", stopped, f.TakeWrites())
				}
			})
		})
	}
}

// A process that is killed at the end of its grace period keeps the Lease, and loses Events.
func TestAStopTakesLessThanTheGracePeriod(t *testing.T) {
	data, err := os.ReadFile("artifacts/deploy/workload/deployment.yaml")
	footest.Must(t, err)
	var manifest appsv1.Deployment
	footest.Must(t, yaml.Unmarshal(data, &manifest))
	grace := time.Duration(*manifest.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if all := drainTimeout + election.ReleaseTimeout + flushTimeout + serving.ShutdownTimeout; all >= grace {
		t.Errorf("a stop may take %v of %v", all, grace)
	}
}

func TestThisProgramsFlagsAreChecked(t *testing.T) {
	for arguments, want := range map[string]string{
		"-image=mirror/nginx:1 -omit-pod-user -max-rollouts=0 -fight-period=1s": "<nil>",
		"-image= -workers=0": `-image="": must be the name of an image; -workers=0`,
		"-max-rollouts=-1":   "-max-rollouts=-1: must be 0 (no limit) or more",
		"-fight-period=0":    "-fight-period=0s: must be 1s or more",
	} {
		if _, err := parse(strings.Fields(arguments), nil); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", arguments, err, want)
		}
	}
}
