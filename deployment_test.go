// SPDX-License-Identifier: Apache-2.0

// Everything specific to Deployments: a table of single syncs, with the objects before and all
// writes and Events after; rollouts, their number and their reports; and admission that changes
// the Deployment of a Foo.

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/memory"
	"example.com/sample-controller/internal/queue"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/preview/previewtest"
)

// syncRow is one sync of the Foo "a": the objects before it, and everything that it does.
type syncRow struct {
	world []runtime.Object
	// refuse maps "verb resource" to the error of such calls.
	refuse map[string]error

	// writes are all writes, deployment is the Deployment that was written, and status is the
	// status. A stored status has one Event, with its reason and message.
	writes     []string
	deployment *appsv1.Deployment
	status     *samplev1alpha1.FooStatus
	err        error
}

// unready returns a status of the Foo "a" that is not ready, with a number of Pods.
func unready(pods int32, reason, message string) *samplev1alpha1.FooStatus {
	status := &samplev1alpha1.FooStatus{
		ObservedGeneration: 1, Replicas: pods, AvailableReplicas: pods,
		Conditions: footest.Ready(metav1.ConditionFalse, reason, message, footest.Now),
	}
	if strings.HasSuffix(reason, "Conflict") {
		status.Conditions = footest.Stalled(status.Conditions)
	}
	return status
}

// rolling returns the status of the Foo "a" during a rollout.
func rolling(available, wanted int32) *samplev1alpha1.FooStatus {
	return counted(unready(available, "Progressing",
		fmt.Sprintf(`Deployment "web" is rolling out: %d of %d Pods available`, available, wanted)))
}

func counted(status *samplev1alpha1.FooStatus) *samplev1alpha1.FooStatus {
	status.Selector = "app=nginx,controller=a"
	return status
}

func TestSync(t *testing.T) {
	serverDown := apierrors.NewServiceUnavailable("etcd is down")
	const refusal = `The API server refused: creating Deployment "web": deployments.apps "web" is forbidden: exceeded quota`
	const notCreated = `Deployment "web" could not be created yet: etcd is down; Deployment "old" stays in service until then`
	created, withStatus := []string{createChild, writeStatus}, []string{updateChild, writeStatus}
	settledNow := footest.Settled("a")
	settledNow.Conditions[0].LastTransitionTime = footest.Now
	ofGeneration2 := counted(unready(2, "Progressing", `Deployment "web" could not be updated yet: etcd is down`))
	ofGeneration2.ObservedGeneration, ofGeneration2.Conditions = 2, footest.OfGeneration(2, ofGeneration2.Conditions)
	withoutReplicas := footest.Created("a")
	withoutReplicas.Spec.Replicas = nil

	for name, row := range map[string]syncRow{
		"a Foo without a Deployment gets one": {
			world:  world(footest.Foo("a", footest.Pending)),
			writes: created, deployment: footest.Created("a"), status: rolling(0, 2),
		},
		"replicas that the Foo does not set are not set in the Deployment": {
			world:  world(footest.Foo("a", footest.WithoutReplicas)),
			writes: created, deployment: withoutReplicas, status: rolling(0, 1),
		},
		"a Foo in its desired state costs no call": {
			world: world(settledFoo(), footest.Deployment("a")),
		},
		"a Deployment that another release made is taken over without a write to it": {
			world: world(footest.Foo("a", footest.WithStatus(samplev1alpha1.FooStatus{AvailableReplicas: 2}), footest.Pending),
				footest.Deployment("a")),
			writes: []string{writeStatus}, status: &settledNow,
		},
		"the image of a Deployment that drifted is reset": {
			world:  world(settledFoo(), footest.Deployment("a", footest.WithImage("nginx:1"), footest.WithSidecar)),
			writes: withStatus, deployment: footest.Deployment("a", footest.WithSidecar), status: rolling(2, 2),
		},
		"a Deployment of that name that the Foo does not control is not changed, but reported": {
			world:  world(footest.Foo("a"), footest.Deployment("b")),
			writes: []string{writeStatus}, status: unready(0, "DeploymentConflict", footest.ConflictWithB),
		},
		"a Foo that is being deleted gets no Deployment": {
			world:  world(footest.Foo("a", footest.BeingDeleted)),
			writes: []string{writeStatus}, status: unready(0, "Terminating", "The Foo is being deleted"),
		},
		"the status reports a refused Deployment, and the error is returned": {
			world: world(footest.Foo("a")), refuse: map[string]error{createChild: quotaExceeded},
			writes: created, deployment: footest.Created("a"), status: unready(0, "DeploymentFailed", refusal), err: quotaExceeded,
		},
		"a Foo whose update fails is not ready, whatever the Deployment was before": {
			world:  world(settledFoo(footest.WithGeneration(2), footest.WithReplicas(5)), footest.Deployment("a")),
			refuse: map[string]error{updateChild: serverDown},
			writes: withStatus, deployment: footest.Deployment("a", footest.ScaledTo(5)), status: ofGeneration2, err: serverDown,
		},
		"a lost race for the status is returned, without an Event": {
			world:  world(footest.Foo("a"), footest.Deployment("a")),
			refuse: map[string]error{"update foos": fooModified},
			writes: []string{writeStatus}, status: &settledNow, err: fooModified,
		},
		"a renamed Foo loses at once an old Deployment that serves no one": {
			world:  world(footest.Foo("a"), oldChild(footest.WithAvailable(0))),
			writes: []string{createChild, deleteChild, writeStatus}, deployment: footest.Created("a"), status: rolling(0, 2),
		},
		"a renamed Foo whose new Deployment can't be created keeps the old one": {
			world: world(footest.Foo("a"), oldChild()), refuse: map[string]error{createChild: serverDown},
			writes: created, deployment: footest.Created("a"), err: serverDown,
			status: unready(0, "Progressing", notCreated),
		},
		"a Deployment that consents to adoption is adopted, and keeps what others set in it": {
			world: world(footest.Foo("a", footest.WithReplicas(5)),
				footest.Deployment("a", footest.WithSidecar, footest.WithoutOwner, footest.WithAdoptBy("a"))),
			writes: withStatus, deployment: footest.Deployment("a", footest.WithSidecar, footest.ScaledTo(5)), status: rolling(2, 5),
		},
	} {
		t.Run(name, func(t *testing.T) { test(t, row.world, row.check) })
	}
}

func (row syncRow) check(f *fixture) {
	for call, err := range row.refuse {
		verb, resource, _ := strings.Cut(call, " ")
		f.refuse(verb, resource, err)
	}
	inCache := map[runtime.Object]runtime.Object{} // each object, as it was before
	for _, object := range append(f.cache.List(), f.primary.cache.List()...) {
		inCache[object.(runtime.Object)] = object.(runtime.Object).DeepCopyObject()
	}
	announced := previewtest.OfPrimary("a", row.world)
	if err := f.sync(); !errors.Is(err, row.err) {
		f.t.Errorf("sync returned %v, not %v", err, row.err)
	}
	if row.refuse == nil {
		previewtest.Check(f.t, announced, &f.api, f.kubeClient.Actions(), f.fooClient.Actions())
	}
	written, wroteStatus := f.written()
	wroteDeployment, _ := written.(*appsv1.Deployment)
	footest.ExpectEqual(f.t, "the Deployment", row.deployment, wroteDeployment)
	footest.ExpectEqual(f.t, "the status", row.status, wroteStatus)
	f.expectWrites(row.writes...)
	var events []string
	if row.status != nil && row.refuse["update foos"] == nil {
		ready := footest.ReadyOf(*row.status)
		kind := map[string]string{"DeploymentConflict": "Warning", "DeploymentFailed": "Warning"}[ready.Reason]
		events = append(events, fmt.Sprint(max(kind, "Normal"), " ", ready.Reason, " ", ready.Message))
	}
	f.expectEvents(events...)
	for object, before := range inCache {
		footest.ExpectEqual(f.t, "an object in the cache", before, object)
	}
}

func TestANewDeploymentHasTheReplicasThatTheOldOneHasNow(t *testing.T) {
	foo := settledFoo(footest.WithoutReplicas, footest.WithChildName("new"))
	testWith(t, holdChildren, world(foo, footest.Child("a", footest.ScaledTo(2))), func(f *fixture) {
		f.change("web", footest.ScaledTo(5)) // the cache has not seen this
		_ = f.sync()
		footest.ExpectEqual(t, "the number of replicas", new(int32(5)), f.deployment("new").Spec.Replicas)
	})
}

// deployment returns a Deployment from the API server.
func (f *fixture) deployment(name string) *appsv1.Deployment {
	f.t.Helper()
	return f.storedChild(name).(*appsv1.Deployment)
}

// rollOut sets how many Pods the Deployment has, and how many of them are available.
func (f *fixture) rollOut(replicas, available int32) {
	f.t.Helper()
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
		f.expectWrites(createChild, writeStatus)
		f.rollOut(1, 0)
		f.rollOut(0, 0)
		if progress := f.memory.Of(footest.Foo("a")).Progress; !progress.IsZero() {
			t.Error("a deferred status is still remembered although it was reverted")
		}

		f.rollOut(1, 0)
		advance(time.Second)
		f.rollOut(2, 0)
		advance(time.Second)
		f.rollOut(2, 1)
		f.expectWrites()
		advance(memory.ThrottleInterval - 2*time.Second - 1)
		f.expectWrites()
		advance(1)
		_, status := f.written()
		if status == nil || status.Replicas != 2 || status.AvailableReplicas != 1 {
			t.Errorf("the status is %+v", status)
		}
		f.expectWrites(writeStatus)

		f.rollOut(2, 0)
		f.expectWrites()
		advance(memory.ThrottleInterval)
		f.expectWrites(writeStatus)
		advance(time.Hour)
		f.expectWrites()
		f.rollOut(1, 0)
		f.deleteFoo("a")
		advance(0)
		f.expectForgotten("a")
	})
}

func TestReadinessAndANewSpecAreWrittenAtOnce(t *testing.T) {
	testRunning(t, world(footest.Foo("a")), func(f *fixture) {
		advance(0)
		f.expectWrites(createChild, writeStatus)
		f.rollOut(2, 1)
		advance(time.Second)
		f.rollOut(2, 2)
		f.expectWrites(writeStatus)
		f.expectEvents(`Normal Progressing Deployment "web" is rolling out: 0 of 2 Pods available`,
			`Normal Available Deployment "web" has 2 of 2 Pods available`)
		advance(time.Hour) // the status that was deferred until then is no longer needed
		f.expectWrites()
		f.scale("a", 3)
		advance(0)
		f.expectWrites(updateChild, writeStatus)
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
				refused := f.refuse(row.verb, row.resource, row.refusal)
				defer f.start(2)()
				for i := range int32(61) { // refused after 0, 1, 3, 7, 15 and 31 s, or every 10 s
					f.rollOut(2, i%2)
					advance(time.Second)
				}
				if n := refused.calls.Load(); n > 7 {
					t.Errorf("the write was sent %d times in a minute", n)
				}
				advance(memory.ThrottleInterval)
				if available := f.cachedFoo("a").Status.AvailableReplicas; row.resource == children && available != 0 {
					t.Errorf("the status counts %d available Pods, not 0", available)
				}
				if statuses := f.count(writeStatus); statuses > 15 {
					t.Errorf("the status was written %d times in a minute", statuses)
				}
				refused.over.Store(true)
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
		f.expectWrites(createChild, updateChild, writeStatus, writeStatus)
		f.resync("a")
		f.resync("a")
		f.expectWrites()

		f.scale("a", 5)
		advance(time.Second)
		f.expectWrites(updateChild, writeStatus)
		ready := f.expectReady("a", "False DeploymentFailed of 2")
		const want = `The API server stored Deployment "web" with different values than requested: ` +
			`spec.template.spec.containers[nginx].image is "mirror.example.com/nginx:latest", not "nginx:latest"`
		footest.ExpectEqual(t, "the message", want, ready.Message)
		f.resync("a")
		f.expectWrites()

		f.change("web", footest.ScaledTo(9), footest.AtGeneration(9))
		advance(time.Second)
		f.expectWrites(updateChild)
		footest.ExpectEqual(t, "the number of replicas", new(int32(5)), f.deployment("web").Spec.Replicas)
		f.resync("a")
		f.expectWrites()

		f.admitChildren("none")
		f.scale("a", 2)
		advance(time.Second)
		f.settle("web")
		advance(time.Second)
		f.expectReady("a", "True Available of 3")
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
		f.expectReady(waits, "False Progressing of 1")
		f.scale(waits, 3) // a change of the spec does not wait
		footest.ExpectEqual(t, "the Deployment whose Foo a user has changed", waits, next())
		footest.ExpectEqual(t, "its replicas", new(int32(3)), f.deployment(waits).Spec.Replicas)
		f.settle(waits)
		f.settle(first)
		last := next()
		f.settle(last)
		advance(time.Minute)
		f.expectReady(first, "True Available of 1")
		f.expectReady(waits, "True Available of 2")
		f.expectReady(last, "True Available of 1")
	})
}

// A rollout whose Pods never become available does not stop the others forever.
func TestARolloutThatHangsGivesWay(t *testing.T) {
	testOutdated(t, func(f *fixture, _ []string) {
		advance(9 * time.Minute)
		f.expectChildWrites(updateChild)
		advance(2 * time.Minute)
		f.expectChildWrites(updateChild)
	})
}
