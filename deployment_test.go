// SPDX-License-Identifier: Apache-2.0

// Everything specific to Deployments: rollouts, their number and their reports; and admission
// that changes the Deployment of a Foo.

package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/queue"
	"example.com/sample-controller/test/footest"
)

func TestANewDeploymentHasTheReplicasThatTheOldOneHasNow(t *testing.T) {
	foo := settledFoo(footest.WithoutReplicas, footest.WithChildName("new"))
	testWith(t, holdChildren, world(foo, footest.Child("a", footest.ScaledTo(2))), func(f *fixture) {
		f.change("web", footest.ScaledTo(5)) // the cache has not seen this
		_ = f.sync()
		footest.ExpectEqual(t, "the number of replicas", new(int32(5)), f.deployment("new").Spec.Replicas)
	})
}

func TestADeploymentThatIsGoneHasNothingToInherit(t *testing.T) {
	foo := settledFoo(footest.WithoutReplicas, footest.WithChildName("new"))
	testWith(t, holdChildren, world(foo, footest.Child("a", footest.ScaledTo(2))), func(f *fixture) {
		f.DeleteChild("web") // the cache has not seen this
		footest.Must(t, f.sync())
		footest.ExpectEqual(t, "the number of replicas", new(int32(1)), f.deployment("new").Spec.Replicas)
	})
}

// deployment returns a Deployment from the API server.
func (f *fixture) deployment(name string) *appsv1.Deployment {
	f.T.Helper()
	return f.StoredChild(name).(*appsv1.Deployment)
}

// rollOut sets how many Pods the Deployment has, and how many of them are available.
func (f *fixture) rollOut(replicas, available int32) {
	f.T.Helper()
	f.change("web", footest.Changed(func(deployment *appsv1.Deployment) {
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: available,
		}
	}))
	advance(0)
}

func TestProgressOfARolloutIsWrittenPeriodically(t *testing.T) {
	testRunning(t, world(footest.Foo("a")), func(f *fixture) {
		advance(0)
		f.ExpectWrites(createChild, writeStatus)
		f.rollOut(1, 0)
		f.rollOut(0, 0)

		f.rollOut(1, 0)
		advance(time.Second)
		f.rollOut(2, 0)
		advance(time.Second)
		f.rollOut(2, 1)
		f.ExpectWrites()
		advance(memory.ThrottleInterval - 2*time.Second - 1)
		f.ExpectWrites()
		advance(1)
		status := f.written()
		if status == nil || status.Replicas != 2 || status.AvailableReplicas != 1 {
			t.Errorf("the status is %+v", status)
		}
		f.ExpectWrites(writeStatus)

		f.rollOut(2, 0)
		f.ExpectWrites()
		advance(memory.ThrottleInterval)
		f.ExpectWrites(writeStatus)
		advance(time.Hour)
		f.ExpectWrites()
		f.rollOut(1, 0)
		f.DeleteFoo("a")
		advance(0)
		f.expectForgotten("a")
	})
}

func TestReadinessAndANewSpecAreWrittenAtOnce(t *testing.T) {
	testRunning(t, world(footest.Foo("a")), func(f *fixture) {
		advance(0)
		f.ExpectWrites(createChild, writeStatus)
		f.rollOut(2, 1)
		advance(time.Second)
		f.rollOut(2, 2)
		f.ExpectWrites(writeStatus)
		f.ExpectEvents(`Normal Progressing Deployment "web" is rolling out: 0 of 2 Pods available`,
			`Normal Available Deployment "web" has 2 of 2 Pods available`)
		advance(time.Hour) // the status that was deferred until then is no longer needed
		f.ExpectWrites()
		f.scale("a", 3)
		advance(0)
		f.ExpectWrites(updateChild, writeStatus)
	})
}

// Changes of the Deployment's status must not repeat a refused write, and the Foo must still
// count its Pods.
func TestARefusedWriteIsNotRepeatedWithEachStatusOfTheDeployment(t *testing.T) {
	forbidden := apierrors.NewForbidden(footest.ChildGR, "web", errors.New("a policy"))
	for name, row := range map[string]struct {
		verb, resource string
		refusal        error
	}{
		"a policy":    {"patch", children, forbidden},
		"Retry-After": {"patch", children, apierrors.NewTooManyRequests("slow down", 10)},
		"a status":    {"update", "foos", forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, world(settledFoo(), footest.Deployment("a", footest.WithImage("nginx:1"))), func(f *fixture) {
				refused := f.Refuse(row.verb, row.resource, row.refusal)
				defer f.start(2)()
				for i := range int32(61) { // refused after 0, 1, 3, 7, 15 and 31 s, or every 10 s
					f.rollOut(2, i%2)
					advance(time.Second)
				}
				if n := refused.Calls.Load(); n > 7 {
					t.Errorf("the write was sent %d times in a minute", n)
				}
				advance(memory.ThrottleInterval)
				if available := f.cachedFoo("a").Status.AvailableReplicas; row.resource == children && available != 0 {
					t.Errorf("the status counts %d available Pods, not 0", available)
				}
				if statuses := f.Count(writeStatus); statuses > 15 {
					t.Errorf("the status was written %d times in a minute", statuses)
				}
				refused.Over.Store(true)
				advance(queue.LastRetry)
				f.expectWanted()
				footest.ExpectEqual(t, "the available Pods in the status", int32(0), f.cachedFoo("a").Status.AvailableReplicas)
			})
		})
	}
}

// The Foo is not ready and says why, and the controller does not fight the webhook.
func TestAWebhookThatChangesTheImageIsNotFought(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.admitChildren("", footest.WithImage("mirror.example.com/nginx:latest"))
		defer f.start(2)()
		advance(time.Second)
		// A webhook may apply only to creations: only an update shows that another is futile.
		f.ExpectWrites(createChild, updateChild, writeStatus, writeStatus)
		f.resync("a")
		f.resync("a")
		f.ExpectWrites()

		f.scale("a", 5)
		advance(time.Second)
		f.ExpectWrites(updateChild, writeStatus)
		ready := f.ExpectReady("a", "False DeploymentFailed of 2")
		const want = `The API server stored Deployment "web" with different values than requested: ` +
			`spec.template.spec.containers[nginx].image is "mirror.example.com/nginx:latest", not "nginx:latest"`
		footest.ExpectEqual(t, "the message", want, ready.Message)
		f.resync("a")
		f.ExpectWrites()

		f.change("web", footest.ScaledTo(9), footest.AtGeneration(9))
		advance(time.Second)
		f.ExpectWrites(updateChild)
		footest.ExpectEqual(t, "the number of replicas", new(int32(5)), f.deployment("web").Spec.Replicas)
		f.resync("a")
		f.ExpectWrites()

		f.admitChildren("none")
		f.scale("a", 2)
		advance(time.Second)
		f.settle("web")
		advance(time.Second)
		f.ExpectReady("a", "True Available of 3")
	})
}

// testOutdated runs a test with the Foos web-0 to web-2, which are at rest, and whose
// Deployments with the same names have an older image. One at a time may restart.
func testOutdated(t *testing.T, body func(f *fixture, names []string)) {
	t.Helper()
	var objects []runtime.Object
	names := []string{"web-0", "web-1", "web-2"}
	for _, name := range names {
		objects = append(objects, footest.Foo(name, footest.WithChildName(name), footest.WithStatus(footest.Settled(name))),
			footest.Deployment(name, footest.Named(name), footest.WithImage("nginx:1"),
				footest.Changed(func(d *appsv1.Deployment) { d.UID = types.UID(name) })))
	}
	test(t, objects, func(f *fixture) {
		f.rollouts.Limit = 1
		defer f.start(2)()
		body(f, names)
	})
}

func TestAnotherImageRestartsAFewFoosAtATime(t *testing.T) {
	testOutdated(t, func(f *fixture, names []string) {
		// next returns the Deployment that restarts next, alone.
		next := func() string {
			advance(2 * time.Second)
			now := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
				return f.deployment(name).Spec.Template.Spec.Containers[0].Image != footest.DefaultImage
			})
			if len(now) != 1 {
				t.Fatalf("of %v, %v are restarted", names, now)
			}
			names = slices.DeleteFunc(names, func(name string) bool { return name == now[0] })
			return now[0]
		}

		first := next()
		advance(5 * time.Minute)
		waits := names[0]
		f.ExpectReady(waits, "False Progressing of 1")
		f.scale(waits, 3) // a change of the spec does not wait
		footest.ExpectEqual(t, "the Deployment whose Foo a user has changed", waits, next())
		footest.ExpectEqual(t, "its replicas", new(int32(3)), f.deployment(waits).Spec.Replicas)
		f.settle(waits)
		f.settle(first)
		last := next()
		f.settle(last)
		advance(time.Minute)
		f.ExpectReady(first, "True Available of 1")
		f.ExpectReady(waits, "True Available of 2")
		f.ExpectReady(last, "True Available of 1")
	})
}

// Foos without a status, as after upstream's controller or a restore, are restarted a few at a
// time, too.
func TestFoosWithoutAStatusAreRestartedAFewAtATime(t *testing.T) {
	var objects []runtime.Object
	for i := range 10 {
		name := fmt.Sprint("f", i)
		objects = append(objects, footest.Foo(name, footest.WithChildName(name)), footest.Child(name, footest.Named(name), footest.WithImage("nginx:1")))
	}
	test(t, objects, func(f *fixture) {
		f.rollouts.Limit = 2
		defer f.start(2)()
		advance(time.Second)
		footest.ExpectEqual(t, "the Foos whose Pods were restarted", 1, f.Count(updateChild)) // half of the limit for a namespace
	})
}

// A change of the spec whose first attempt fails does not become a repair that waits for others.
func TestAChangeOfTheSpecThatFailedOnceDoesNotWaitForRollouts(t *testing.T) {
	test(t, atRest(), func(f *fixture) {
		f.rollouts.Limit = 1
		f.rollouts.Begin(cache.ObjectName{Namespace: "team-b", Name: "hangs"})
		defer f.start(2)()
		advance(time.Second)
		f.FailTimes(1, "patch", children, serverFails)
		f.change("web", footest.WithImage("nginx:1")) // as after a change of -image
		advance(time.Second)
		f.ExpectReady("a", "False Progressing of 1")
		f.scale("a", 5)
		advance(time.Minute)
		f.expectWanted()
	})
}

// withRollout returns a change of a Deployment's status: its rollout is complete, or has exceeded
// its deadline.
func withRollout(complete bool, available int32) footest.ChildOption {
	condition := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}
	if !complete {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, "ProgressDeadlineExceeded", "ReplicaSet has timed out progressing"
	}
	return footest.Changed(func(deployment *appsv1.Deployment) {
		deployment.Status.Conditions = []appsv1.DeploymentCondition{condition}
		deployment.Status.ObservedGeneration, deployment.Status.AvailableReplicas = deployment.Generation, available
	})
}

// What failed before, here a rollout, hides neither an outage nor the opponents of a few repairs.
func TestAFailedRolloutHidesNothing(t *testing.T) {
	stuck := func() []runtime.Object { return world(footest.Foo("a"), footest.Child("a", withRollout(false, 0))) }
	testRunning(t, stuck(), func(f *fixture) {
		advance(time.Second)
		f.expectStalled(failed)
		f.Refuse("create", children, apierrors.NewInternalError(errors.New(`failed calling webhook "x"`)))
		f.DeleteChild("web")
		advance(time.Hour)
		if ready := f.ExpectReady("a", "False Progressing of 1"); strings.Contains(ready.Message, "does not roll out") {
			t.Errorf("there is no Deployment, and the condition is %q", ready.Message)
		}
		f.expectStalled("")
	})
	testRunning(t, stuck(), func(f *fixture) {
		advance(time.Second)
		for range 2 {
			f.change("web", footest.ScaledTo(7))
			advance(20 * time.Second)
			f.change("web", withRollout(false, 0)) // its controller has seen the repair
			advance(20 * time.Second)
		}
		if ready := f.ExpectReady("a", "False "+failed+" of 1"); !strings.Contains(ready.Message, "does not roll out") {
			t.Errorf("the condition is %q", ready.Message)
		}
	})
}

// An update that stays refused stalls the Foo, although others change the Deployment all the time.
func TestARefusalIsStalledAlthoughTheDeploymentChanges(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Child("a", footest.Drifted)), func(f *fixture) {
		refused := f.Refuse("patch", children, denial(http.StatusForbidden, metav1.StatusReasonForbidden))
		defer f.start(2)()
		for i := range 10 {
			f.change("web", footest.Changed(func(deployment *appsv1.Deployment) {
				deployment.Annotations = map[string]string{"i": fmt.Sprint(i)}
				deployment.Generation++
			}))
			advance(20 * time.Second)
		}
		f.expectStalled(failed)
		refused.Over.Store(true)
		advance(5 * time.Minute)
		f.expectWanted()
		refused.Over.Store(false)
		f.change("web", footest.Drifted)
		advance(29 * time.Second) // another refusal may pass
		f.expectStalled("")
	})
}

// Pods that become unready now and then cause neither a status nor an Event each time. The Foo is
// never ready without its Pods, and ready again once they have lasted.
func TestPodsThatFlapAreDamped(t *testing.T) {
	for _, lost := range []int32{1, 2} {
		testRunning(t, atRest(), func(f *fixture) {
			f.change("web", withRollout(true, 2))
			advance(time.Second)
			f.TakeWrites()
			for range 30 {
				f.change("web", withRollout(true, 2-lost))
				advance(200 * time.Millisecond)
				f.ExpectReady("a", map[int32]string{1: "False Degraded of 1", 2: "False Unavailable of 1"}[lost])
				f.change("web", withRollout(true, 2))
				advance(200 * time.Millisecond)
			}
			if writes, events := f.TakeWrites(), f.Recorded(); len(writes) > 8 || len(events) > 6 || len(writes) < 5 {
				t.Errorf("12 s of flapping led to %d writes and the Events %q", len(writes), events)
			}
			advance(longestDamping)
			f.ExpectReady("a", "True Available of 1")
			advance(2 * time.Minute)
			f.resync("a")
			f.TakeWrites()
			for range 3 { // seldom: each is written at once
				f.change("web", withRollout(true, 2-lost))
				advance(time.Second)
				f.change("web", withRollout(true, 2))
				advance(2 * time.Minute)
			}
			footest.ExpectEqual(t, "the writes of what happens seldom", 6, len(f.TakeWrites()))
		})
	}
}

func TestASyncThatIsAskedForReportsPodsThatFlapped(t *testing.T) {
	testRunning(t, atRest(), func(f *fixture) {
		for range 6 {
			f.change("web", withRollout(true, 0))
			advance(3 * time.Second)
			f.change("web", withRollout(true, 2))
			advance(100 * time.Millisecond)
		}
		f.ExpectReady("a", "False Unavailable of 1")
		f.askToSync("a", "1")
		advance(100 * time.Millisecond)
		f.ExpectReady("a", "True Available of 1")
	})
}

// longestDamping is how long Pods must be available again before the Foo is ready, at most.
const longestDamping = 30 * time.Second
