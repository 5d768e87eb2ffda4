// SPDX-License-Identifier: Apache-2.0

// A table of single syncs: the objects before, and all writes and Events after.

package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/preview/previewtest"
)

// syncRow is one sync of the Foo "a": the objects before it, and everything that it does.
type syncRow struct {
	world []runtime.Object
	// refuse has the errors of calls, by "verb resource".
	refuse map[string]error

	wantWrites     []string
	wantDeployment *appsv1.Deployment
	wantStatus     *samplev1alpha1.FooStatus
	wantEvents     []string
	wantErr        error
}

func TestSync(t *testing.T) {
	quotaExceeded := apierrors.NewForbidden(footest.ChildGR, "web", errors.New("exceeded quota"))
	serverDown := apierrors.NewServiceUnavailable("etcd is down")
	namespaceGoing := footest.NamespaceTerminating()
	lostRace := apierrors.NewConflict(footest.ChildGR, "web", errors.New("modified"))

	for name, row := range map[string]syncRow{
		"a Foo without a Deployment gets one": {
			world:          []runtime.Object{footest.Foo("a", footest.Pending)},
			wantWrites:     []string{createChild, "update foos/status"},
			wantDeployment: footest.Created("a"),
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Selector: "app=nginx,controller=a",
				Conditions: footest.Ready(metav1.ConditionFalse, "Progressing", `Deployment "web" is rolling out: 0 available of 2 wanted Pods`, footest.Now),
			},
			wantEvents: []string{`Normal Progressing Deployment "web" is rolling out: 0 available of 2 wanted Pods`},
		},
		"replicas that the Foo does not set are not set in the Deployment": {
			world:      []runtime.Object{footest.Foo("a", footest.WithoutReplicas)},
			wantWrites: []string{createChild, "update foos/status"},
			wantDeployment: func() *appsv1.Deployment {
				object := footest.Created("a")
				object.Spec.Replicas = nil
				return object
			}(),
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Selector: "app=nginx,controller=a",
				Conditions: footest.Ready(metav1.ConditionFalse, "Progressing", `Deployment "web" is rolling out: 0 available of 1 wanted Pods`, footest.Now),
			},
			wantEvents: []string{`Normal Progressing Deployment "web" is rolling out: 0 available of 1 wanted Pods`},
		},
		"a Foo in its desired state costs no call": {
			world: []runtime.Object{footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a")},
		},
		"a Deployment that another release made is taken over without a write to it": {
			world:      []runtime.Object{footest.Foo("a", footest.WithStatus(samplev1alpha1.FooStatus{AvailableReplicas: 2}), footest.Pending), footest.Deployment("a")},
			wantWrites: []string{"update foos/status"},
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Replicas: 2, AvailableReplicas: 2, Selector: "app=nginx,controller=a",
				Conditions: footest.Ready(metav1.ConditionTrue, "Available", `Deployment "web" has 2 of 2 Pods available`, footest.Now),
			},
			wantEvents: []string{`Normal Available Deployment "web" has 2 of 2 Pods available`},
		},
		"a scaled Foo scales its Deployment and changes nothing else in it": {
			world:          []runtime.Object{footest.Foo("a", footest.WithReplicas(5), footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.WithSidecar)},
			wantWrites:     []string{updateChild, "update foos/status"},
			wantDeployment: footest.Deployment("a", footest.WithSidecar, footest.ScaledTo(5)),
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Replicas: 2, AvailableReplicas: 2, Selector: "app=nginx,controller=a",
				Conditions: footest.Ready(metav1.ConditionFalse, "Progressing", `Deployment "web" is rolling out: 2 available of 5 wanted Pods`, footest.Now),
			},
			wantEvents: []string{`Normal Progressing Deployment "web" is rolling out: 2 available of 5 wanted Pods`},
		},
		"the image of a Deployment that drifted is reset": {
			world:          []runtime.Object{footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.WithImage("nginx:1"), footest.WithSidecar)},
			wantWrites:     []string{updateChild, "update foos/status"},
			wantDeployment: footest.Deployment("a", footest.WithSidecar),
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Replicas: 2, AvailableReplicas: 2, Selector: "app=nginx,controller=a",
				Conditions: footest.Ready(metav1.ConditionFalse, "Progressing", `Deployment "web" is rolling out: 2 available of 2 wanted Pods`, footest.Now),
			},
			wantEvents: []string{`Normal Progressing Deployment "web" is rolling out: 2 available of 2 wanted Pods`},
		},
		"an autoscaler's replicas stay if the Foo does not set them": {
			world: []runtime.Object{footest.Foo("a", footest.WithoutReplicas, footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.ScaledTo(2))},
		},
		"one more Pod available can wait": {
			world: []runtime.Object{
				footest.Foo("a", footest.WithStatus(samplev1alpha1.FooStatus{
					ObservedGeneration: 1, Replicas: 2, Selector: "app=nginx,controller=a",
					Conditions: footest.Ready(metav1.ConditionFalse, "Progressing", `Deployment "web" is rolling out: 0 available of 2 wanted Pods`, footest.Earlier),
				})),
				footest.Deployment("a", footest.WithAvailable(1)),
			},
		},
		"a Deployment of that name that the Foo does not control is not changed, but reported": {
			world:      []runtime.Object{footest.Foo("a"), footest.Deployment("b")},
			wantWrites: []string{"update foos/status"},
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1,
				Conditions:         footest.Stalled(footest.Ready(metav1.ConditionFalse, "DeploymentConflict", footest.ConflictWithB, footest.Now)),
			},
			wantEvents: []string{"Warning DeploymentConflict " + footest.ConflictWithB},
		},
		"a conflict is reported once": {
			world: []runtime.Object{
				footest.Foo("a", footest.WithStatus(samplev1alpha1.FooStatus{
					ObservedGeneration: 1,
					Conditions:         footest.Stalled(footest.Ready(metav1.ConditionFalse, "DeploymentConflict", footest.ConflictWithNobody, footest.Earlier)),
				})),
				footest.Deployment("a", footest.WithoutOwner),
			},
		},
		"a Foo that is being deleted gets no Deployment": {
			world:      []runtime.Object{footest.Foo("a", footest.BeingDeleted)},
			wantWrites: []string{"update foos/status"},
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Conditions: footest.Ready(metav1.ConditionFalse, "Terminating", "The Foo is being deleted", footest.Now),
			},
			wantEvents: []string{"Normal Terminating The Foo is being deleted"},
		},
		"a Deployment that is being deleted is not written, although it drifted": {
			world:      []runtime.Object{footest.Foo("a", footest.WithReplicas(5), footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.Terminating)},
			wantWrites: []string{"update foos/status"},
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Replicas: 2, AvailableReplicas: 2, Selector: "app=nginx,controller=a",
				Conditions: footest.Ready(metav1.ConditionFalse, "Terminating", `Deployment "web" is being deleted; it is created again once it is gone`, footest.Now),
			},
			wantEvents: []string{`Normal Terminating Deployment "web" is being deleted; it is created again once it is gone`},
		},
		"the status reports a refused Deployment, and the error is returned": {
			world:          []runtime.Object{footest.Foo("a")},
			refuse:         map[string]error{createChild: quotaExceeded},
			wantWrites:     []string{createChild, "update foos/status"},
			wantDeployment: footest.Created("a"),
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1,
				Conditions: footest.Ready(metav1.ConditionFalse, "DeploymentFailed",
					`The API server refused: creating Deployment "web": deployments.apps "web" is forbidden: exceeded quota`, footest.Now),
			},
			wantEvents: []string{`Warning DeploymentFailed The API server refused: creating Deployment "web": deployments.apps "web" is forbidden: exceeded quota`},
			wantErr:    quotaExceeded,
		},
		"a Foo whose update fails is not ready, whatever the Deployment was before": {
			world:          []runtime.Object{footest.Foo("a", footest.WithGeneration(2), footest.WithReplicas(5), footest.WithStatus(footest.Settled("a"))), footest.Deployment("a")},
			refuse:         map[string]error{updateChild: serverDown},
			wantWrites:     []string{updateChild, "update foos/status"},
			wantDeployment: footest.Deployment("a", footest.ScaledTo(5)),
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 2, Replicas: 2, AvailableReplicas: 2, Selector: "app=nginx,controller=a",
				Conditions: footest.OfGeneration(2, footest.Ready(metav1.ConditionFalse, "Progressing", `Deployment "web" could not be updated yet: etcd is down`, footest.Now)),
			},
			wantEvents: []string{`Normal Progressing Deployment "web" could not be updated yet: etcd is down`},
			wantErr:    serverDown,
		},
		"an outage does not replace the refusal of the same spec in the condition": {
			world:          []runtime.Object{footest.Foo("a", footest.WithStatus(footest.RefusedStatus())), footest.Deployment("a", footest.ScaledTo(5))},
			refuse:         map[string]error{updateChild: serverDown},
			wantWrites:     []string{updateChild},
			wantDeployment: footest.Deployment("a"),
			wantErr:        serverDown,
		},
		"a lost race for the status is returned, without an Event": {
			world:      []runtime.Object{footest.Foo("a"), footest.Deployment("a")},
			refuse:     map[string]error{"update foos": lostRace},
			wantWrites: []string{"update foos/status"},
			wantStatus: func() *samplev1alpha1.FooStatus {
				status := footest.Settled("a")
				status.Conditions[0].LastTransitionTime = footest.Now
				return &status
			}(),
			wantErr: lostRace,
		},
		"in a terminating namespace nothing is reported or retried": {
			world:          []runtime.Object{footest.Foo("a")},
			refuse:         map[string]error{createChild: namespaceGoing},
			wantWrites:     []string{createChild},
			wantDeployment: footest.Created("a"),
			wantErr:        namespaceGoing,
		},
		"a renamed Foo gets the new Deployment, and keeps the old one in service": {
			world:          []runtime.Object{footest.Foo("a"), footest.Deployment("a", footest.Named("old"))},
			wantWrites:     []string{createChild, "update foos/status"},
			wantDeployment: footest.Created("a"),
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Selector: "app=nginx,controller=a",
				Conditions: footest.Ready(metav1.ConditionFalse, "Progressing", `Deployment "web" is rolling out: 0 available of 2 wanted Pods; Deployment "old" stays in service until then`, footest.Now),
			},
			wantEvents: []string{`Normal Progressing Deployment "web" is rolling out: 0 available of 2 wanted Pods; Deployment "old" stays in service until then`},
		},
		"a renamed Foo loses at once an old Deployment that serves nobody": {
			world:          []runtime.Object{footest.Foo("a"), footest.Deployment("a", footest.Named("old"), footest.WithAvailable(0))},
			wantWrites:     []string{createChild, deleteChild, "update foos/status"},
			wantDeployment: footest.Created("a"),
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Selector: "app=nginx,controller=a",
				Conditions: footest.Ready(metav1.ConditionFalse, "Progressing", `Deployment "web" is rolling out: 0 available of 2 wanted Pods`, footest.Now),
			},
			wantEvents: []string{`Normal Progressing Deployment "web" is rolling out: 0 available of 2 wanted Pods`},
		},
		"a renamed Foo loses the old Deployment even if the controller was restarted half-way": {
			world:      []runtime.Object{footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"), footest.Deployment("a", footest.Named("old"))},
			wantWrites: []string{deleteChild},
		},
		"a renamed Foo that can't have the new name keeps the old Deployment": {
			world:      []runtime.Object{footest.Foo("a"), footest.Deployment("b"), footest.Deployment("a", footest.Named("old"))},
			wantWrites: []string{"update foos/status"},
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Conditions: footest.Stalled(footest.Ready(metav1.ConditionFalse, "DeploymentConflict", footest.ConflictWithB, footest.Now)),
			},
			wantEvents: []string{"Warning DeploymentConflict " + footest.ConflictWithB},
		},
		"a renamed Foo whose new Deployment can't be created keeps the old one": {
			world:          []runtime.Object{footest.Foo("a"), footest.Deployment("a", footest.Named("old"))},
			refuse:         map[string]error{createChild: serverDown},
			wantWrites:     []string{createChild, "update foos/status"},
			wantDeployment: footest.Created("a"),
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Conditions: footest.Ready(metav1.ConditionFalse, "Progressing", `Deployment "web" could not be created yet: etcd is down; Deployment "old" stays in service until then`, footest.Now),
			},
			wantEvents: []string{`Normal Progressing Deployment "web" could not be created yet: etcd is down; Deployment "old" stays in service until then`},
			wantErr:    serverDown,
		},
		"a Deployment that asks for adoption is adopted, and keeps what others set in it": {
			world:          []runtime.Object{footest.Foo("a", footest.WithReplicas(5)), footest.Deployment("a", footest.WithSidecar, footest.WithoutOwner, footest.WithAdoptBy("a"))},
			wantWrites:     []string{updateChild, "update foos/status"},
			wantDeployment: footest.Deployment("a", footest.WithSidecar, footest.ScaledTo(5)),
			wantStatus: &samplev1alpha1.FooStatus{
				ObservedGeneration: 1, Replicas: 2, AvailableReplicas: 2, Selector: "app=nginx,controller=a",
				Conditions: footest.Ready(metav1.ConditionFalse, "Progressing", `Deployment "web" is rolling out: 2 available of 5 wanted Pods`, footest.Now),
			},
			wantEvents: []string{`Normal Progressing Deployment "web" is rolling out: 2 available of 5 wanted Pods`},
		},
		"the key of a deleted Foo is no error": {
			world: []runtime.Object{footest.Foo("b")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { row.check(t) })
		})
	}
}

func (row syncRow) check(t *testing.T) {
	f := newFixture(t, row.world...)
	for call, err := range row.refuse {
		verb, resource, _ := strings.Cut(call, " ")
		f.refuse(verb, resource, err)
	}
	announced := previewtest.OfPrimary("a", row.world)
	err := f.syncHandler(f.ctx, cache.ObjectName{Namespace: footest.Namespace, Name: "a"})
	if !errors.Is(err, row.wantErr) {
		t.Errorf("sync returned %v, not %v", err, row.wantErr)
	}
	if row.refuse == nil {
		previewtest.Check(t, announced, &f.api, f.kubeClient.Actions(), f.fooClient.Actions())
	}
	verbs, _ := f.writes()
	footest.ExpectEqual(t, "the list of writes", row.wantWrites, verbs)
	written, wroteStatus := f.written(t)
	wroteDeployment, _ := written.(*appsv1.Deployment)
	footest.ExpectEqual(t, "the Deployment", row.wantDeployment, wroteDeployment)
	footest.ExpectEqual(t, "the status", row.wantStatus, wroteStatus)
	footest.ExpectEqual(t, "the list of events", row.wantEvents, f.recorded())
	f.checkCacheUntouched(t)
}

// Nor may it cause live reads for ever, if there is no status to write any more.
func TestFooWithTheLiveVersionIsReadLiveOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.WithAvailable(0)))
		f.failTimes(1, "update", "foos", apierrors.NewConflict(footest.FoosResource.GroupResource(), "a", nil))
		defer f.start(2)()
		advance(0)
		f.updateChild(t, footest.Deployment("a"))
		advance(time.Minute)
		f.expectWrites(t, "update foos/status")
		if f.remembers("a") {
			t.Error("a Foo counts as stale although its version is the API server's")
		}
	})
}

// TestADeploymentStaysUntilItsSuccessorHasTakenOver has live states that differ from those of
// the cache, in which the new Deployment is ready.
func TestADeploymentStaysUntilItsSuccessorHasTakenOver(t *testing.T) {
	idle := footest.Changed(func(deployment *appsv1.Deployment) { deployment.Status = appsv1.DeploymentStatus{} })
	for name, live := range map[string]struct{ wanted, old footest.Object }{
		"the new one has no available Pod any more":                {footest.Child("a", footest.WithAvailable(0)), footest.Child("a", footest.Named("old"))},
		"the new one has drifted":                                  {footest.Child("a", footest.WithImage("other")), footest.Child("a", footest.Named("old"))},
		"the new one is another Foo's, the old one serves nothing": {footest.Child("b"), footest.Child("a", footest.Named("old"), idle)},
		"the new one goes, the old one serves nothing":             {footest.Child("a", footest.Terminating), footest.Child("a", footest.Named("old"), idle)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"), live.old)
				f.answerGets(footest.Foo("a"), live.wanted, live.old)
				_ = f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a")))
				f.expectWrites(t)
			})
		})
	}
}

// TestANewDeploymentHasTheReplicasThatTheOldOneHasNow fails if the number is that of the cache.
func TestANewDeploymentHasTheReplicasThatTheOldOneHasNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foo := footest.Foo("a", footest.WithoutReplicas, footest.WithChildName("new"), footest.WithStatus(footest.Settled("a")))
		f := newFixture(t, foo, footest.Child("a", footest.ScaledTo(2)))
		f.answerGets(foo, footest.Child("a", footest.ScaledTo(5)))
		_ = f.syncHandler(f.ctx, footest.KeyOf(foo))
		if got := f.storedChild(t, "new").(*appsv1.Deployment).Spec.Replicas; got == nil || *got != 5 {
			t.Errorf("it has %v replicas, want 5", got)
		}
	})
}
