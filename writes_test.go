// SPDX-License-Identifier: Apache-2.0

// Tests of the writes of children: the live reads before them, adoption, children with earlier
// names, others who deny, change or undo writes, the metrics of writes, and calls that hang.

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

// In each row a live read contradicts the caches, so nothing is written.
func TestNothingIsWrittenOnTheBasisOfACacheAlone(t *testing.T) {
	behind, handOver := failure.ErrBehind, footest.WithAdoptBy("a")
	drifted := world(settledFoo(), footest.Child("a", footest.Drifted))
	orphan := world(settledFoo(), footest.Child("a", footest.WithoutOwner, handOver))
	renamed := atRest(oldChild())
	// The cache may still have the child with an earlier name, although it is deleted. A Foo
	// that is renamed back to it must not become ready because of that.
	renamedBack := world(settledFoo(footest.WithGeneration(3)), footest.Child("a"))
	for name, row := range map[string]struct {
		cached []runtime.Object
		live   footest.Object // if it is nil, the child "old" is gone
		want   error
	}{
		"update: the Foo has a newer spec": {drifted, settledFoo(footest.WithReplicas(9), footest.WithGeneration(2)), behind},
		// As after a restore of etcd.
		"update: the same generation has another spec": {drifted, settledFoo(footest.WithReplicas(9)), behind},
		"update: the child is as desired":              {drifted, footest.Child("a"), behind},

		"adoption: the annotation was removed":     {orphan, footest.Child("a", footest.WithoutOwner), behind},
		"adoption: another Foo controls the child": {orphan, footest.Child("b", handOver), behind},
		"adoption: the child is being deleted":     {orphan, footest.Child("a", footest.WithoutOwner, handOver, footest.Terminating), behind},

		"deletion: the Foo was renamed back":               {renamed, settledFoo(footest.WithChildName("old"), footest.WithGeneration(2)), behind},
		"deletion: the Foo is being deleted":               {renamed, settledFoo(footest.BeingDeleted), behind},
		"deletion: the Foo was recreated":                  {renamed, settledFoo(footest.WithFooUID("uid-new")), behind},
		"deletion: another Foo controls the wanted child":  {renamed, footest.Child("b"), behind},
		"deletion: the wanted child is being deleted":      {renamed, footest.Child("a", footest.Terminating), behind},
		"deletion: the wanted child is not ready any more": {renamed, footest.Child("a", footest.WithAvailable(0)), nil},
		"deletion: the wanted child has drifted":           {renamed, footest.Child("a", footest.WithImage("other")), nil},
		"deletion: another Foo controls the old child":     {renamed, footest.Child("b", footest.Named("old")), nil},
		"deletion: the old child was orphaned":             {renamed, oldChild(footest.WithoutOwner), nil},
		"deletion: the old child is being deleted":         {renamed, oldChild(footest.Terminating), nil},
		"deletion: the old child is gone already":          {renamed, nil, nil},

		"ready: another Foo controls the child": {renamedBack, footest.Child("b"), behind},
		"ready: the child has drifted":          {renamedBack, footest.Child("a", footest.Drifted), behind},
		"ready: the child is being deleted":     {renamedBack, footest.Child("a", footest.Terminating), behind},
	} {
		t.Run(name, func(t *testing.T) {
			testWith(t, holdAll, row.cached, func(f *fixture) {
				if row.live != nil {
					f.Put(row.live)
				} else {
					f.DeleteChild("old")
				}
				if err := f.sync(); !errors.Is(err, row.want) {
					t.Errorf("the sync ended with %v, not %v", err, row.want)
				}
				f.ExpectWrites()
			})
		})
	}
}

func TestDeleteNamesWhatItDeletes(t *testing.T) {
	test(t, atRest(oldChild(footest.AtVersion("33"))), func(f *fixture) {
		footest.Must(t, f.sync())
		var options []metav1.DeleteOptions
		for _, action := range f.Kube.Actions() {
			if action, ok := action.(clienttesting.DeleteActionImpl); ok {
				options = append(options, action.DeleteOptions)
			}
		}
		footest.ExpectEqual(t, "the options of the deletions", []metav1.DeleteOptions{{
			Preconditions:     &metav1.Preconditions{UID: new(oldChild().GetUID()), ResourceVersion: new("33")},
			PropagationPolicy: new(metav1.DeletePropagationBackground),
		}}, options)
	})
}

// Another client deletes the old child after the live read.
func TestTheDeletionOfAChildThatIsGoneIsNoError(t *testing.T) {
	test(t, atRest(oldChild()), func(f *fixture) {
		f.Refuse("delete", children, apierrors.NewNotFound(footest.Primary.Resource.GroupResource(), "old"))
		footest.Must(t, f.sync())
		f.ExpectWrites(deleteChild)
	})
}

// An owner's UID means nothing in another namespace.
func TestChildrenOfOtherNamespacesAreIgnored(t *testing.T) {
	elsewhere := func(name string) footest.Object {
		return footest.Child("a", footest.Named(name), func(child footest.Object) { child.SetNamespace("team-b") })
	}
	test(t, world(footest.Foo("a"), footest.Child("a"), elsewhere("one"), elsewhere("two")), func(f *fixture) {
		footest.Must(t, f.sync())
		for _, action := range f.Kube.Actions() {
			if get, ok := action.(clienttesting.GetAction); ok && get.GetName() != "web" {
				t.Errorf("child %s in another namespace was read", get.GetName())
			}
		}
	})
}

// If a webhook reverts an adoption, including the annotation, the controller does not retry it.
func TestAnAdoptionThatIsUndoneIsNotRepeated(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a"))), func(f *fixture) {
		f.admitChildren("update", footest.WithoutOwner, footest.WithAdoptBy("a"))
		defer f.start(2)()
		for range 5 {
			f.resync("a")
		}
		f.ExpectReady("a", "False "+failed+" of 1")
		f.ExpectWrites(updateChild, writeStatus)
		if got := f.cachedFoo("a").Status; got.Replicas != 0 || got.Selector != "" {
			t.Errorf("the status counts Pods that are not the Foo's: %+v", got)
		}
	})
}

// denials look like lost races, except for one that looks like nothing known.
var denials = map[string]error{
	"code 409":        denial(http.StatusConflict, ""),
	"code 404":        denial(http.StatusNotFound, ""),
	"code 418":        denial(http.StatusTeapot, ""),
	"reason Conflict": denial(http.StatusConflict, metav1.StatusReasonConflict),
	"reason NotFound": denial(http.StatusNotFound, metav1.StatusReasonNotFound),
}

// A lasting denial is reported within seconds, and rarely requested again.
func TestALastingDenialIsTold(t *testing.T) {
	settled := settledFoo(footest.WithGeneration(2))
	for verb, objects := range map[string][]runtime.Object{
		"create": world(footest.Foo("a")),
		"patch":  world(settled, footest.Child("a", footest.Drifted)),
		"delete": world(settled, footest.Child("a"), oldChild()),
	} {
		for how, err := range denials {
			t.Run(verb+", "+how, func(t *testing.T) {
				test(t, objects, func(f *fixture) {
					denied := f.Refuse(verb, children, err)
					defer f.start(2)()
					advance(5 * time.Second)
					foo := f.cachedFoo("a")
					ready := footest.ReadyOf(foo.Status)
					if ready.Status != metav1.ConditionFalse || ready.ObservedGeneration != foo.Generation || !strings.Contains(ready.Message, "taken") {
						t.Errorf("after 5 s the condition is %+v", ready)
					}
					advance(time.Hour)
					if n := denied.Calls.Load(); n > 30 {
						t.Errorf("%d requests in an hour", n)
					}
					denied.Over.Store(true)
					advance(10 * time.Minute)
					f.settle("web")
					advance(time.Minute)
					f.ExpectReady("a", "True Available of "+[]string{"", "1", "2"}[foo.Generation])
				})
			})
		}
	}
}

func TestMetricsOfAController(t *testing.T) {
	foos := world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("taken")), footest.Child("c", footest.Named("taken")))
	test(t, foos, func(f *fixture) {
		f.ExpectMetrics("writes before the first", countOf(createChild, 0))
		f.callsTake("create", 3*time.Second)
		defer f.start(1)()
		advance(4 * time.Second)
		f.ExpectMetrics("writes", countOf(createChild, 1), countOf(updateChild, 0), countOf(deleteChild, 0), countOf(writeStatus, 2))
		f.ExpectMetrics("durations", `sample_controller_sync_duration_seconds_sum{result="success"} 3`)

		f.change("web", footest.Drifted)
		advance(time.Second)
		f.ExpectMetrics("writes of a change", countOf(updateChild, 1))

		renamed := f.StoredFoo("a")
		footest.WithChildName("renamed")(renamed)
		f.Put(renamed)
		advance(4 * time.Second)
		f.ExpectMetrics("writes of a rename", countOf(createChild, 2), countOf(deleteChild, 1))
	})
}

func TestRefusedWritesAreCountedByCause(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.Refuse("create", children, quotaExceeded)
		f.Refuse("update", "foos", apierrors.NewUnauthorized("no"))
		defer f.start(1)()
		advance(0)
		f.ExpectMetrics("refused writes", countOf(createChild, 0), countOf(writeStatus, 0),
			`sample_controller_refusals_total{cause="quota"} 1`,
			`sample_controller_refusals_total{cause="permission"} 1`,
			`sample_controller_refusals_total{cause="policy"} 0`,
			`sample_controller_sync_duration_seconds_count{result="error"} 1`,
			`sample_controller_sync_duration_seconds_count{result="success"} 0`)
	})
}

// Each file has Foos of all kinds and their Deployments as a release left them, on a real API server.
func TestAnUpdateWritesNothingToObjectsAtRest(t *testing.T) {
	const folder = "testdata/at-rest"
	files, err := os.ReadDir(folder)
	footest.Must(t, err)
	for _, file := range files {
		t.Run(file.Name(), func(t *testing.T) {
			recorded, err := os.ReadFile(filepath.Join(folder, file.Name()))
			footest.Must(t, err)
			var list struct{ Items []runtime.RawExtension }
			footest.Must(t, yaml.Unmarshal(recorded, &list))
			var objects []runtime.Object
			for _, item := range list.Items {
				object, _, err := fooscheme.Codecs.UniversalDeserializer().Decode(item.Raw, nil, nil)
				if runtime.IsNotRegisteredError(err) {
					object, _, err = scheme.Codecs.UniversalDeserializer().Decode(item.Raw, nil, nil)
				}
				footest.Must(t, err)
				objects = append(objects, object)
			}
			testRunning(t, objects, func(f *fixture) {
				advance(time.Hour)
				f.ExpectWrites()
				f.ExpectEvents()
			})
		})
	}
}

// While a changed name waits, the child in service is what an autoscaler and the user see.
func TestTheChildInServiceIsReported(t *testing.T) {
	for name, row := range map[string]struct {
		options []footest.FooOption
		others  []footest.Object
		refused bool
	}{
		"suspended":         {[]footest.FooOption{footest.Suspended}, nil, false},
		"the name is taken": {nil, []footest.Object{footest.Child("b", footest.Named("new"))}, false},
		"being deleted":     {nil, []footest.Object{footest.Child("b", footest.Named("new"), footest.Terminating)}, false},
		"refused":           {nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			foo := settledFoo(append(row.options, footest.WithGeneration(2), footest.WithChildName("new"))...)
			objects := world(foo, footest.Child("a"))
			for _, other := range row.others {
				objects = append(objects, other)
			}
			test(t, objects, func(f *fixture) {
				if row.refused {
					f.Refuse("create", children, denial(http.StatusForbidden, metav1.StatusReasonForbidden))
				}
				defer f.start(2)()
				advance(time.Minute)
				want, got := footest.Settled("a"), f.cachedFoo("a").Status
				footest.ExpectEqual(t, "the Pods and their selector", []any{want.Replicas, want.AvailableReplicas, want.Selector},
					[]any{got.Replicas, got.AvailableReplicas, got.Selector})
			})
		})
	}
}

// A user who removes the cause of a refusal, here from the child, need not wait for the back-off.
func TestARefusedAdoptionIsTriedAgainWhenTheChildChanges(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a"))), func(f *fixture) {
		refused := f.Refuse("patch", children, denial(http.StatusForbidden, metav1.StatusReasonForbidden))
		defer f.start(2)()
		advance(20 * time.Minute)
		refused.Over.Store(true)
		f.change("web", func(child footest.Object) { child.SetGeneration(child.GetGeneration() + 1) })
		advance(2 * time.Second)
		f.expectWanted()
	})
}

func TestAFailedReadNamesItsChild(t *testing.T) {
	test(t, world(settledFoo(footest.WithGeneration(2)), footest.Child("a"), oldChild()), func(f *fixture) {
		f.On("get", children, func(action clienttesting.Action) error {
			if action.(clienttesting.GetAction).GetName() == "old" {
				return serverFails
			}
			return nil
		})
		defer f.start(2)()
		advance(time.Minute)
		if ready := footest.ReadyOf(f.cachedFoo("a").Status); !strings.Contains(ready.Message, `"old" could not be checked yet`) {
			t.Errorf("the condition is %q", ready.Message)
		}
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
