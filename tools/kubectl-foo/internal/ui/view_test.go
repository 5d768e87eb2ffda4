// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/options"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/preview"
)

func named(name string) cache.ObjectName {
	return cache.ObjectName{Namespace: footest.Namespace, Name: name}
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	data, err := json.MarshalIndent(value, "", " ")
	footest.Must(t, err)
	return string(data)
}

// TestThePageSaysWhatWhyAndPlanSay compares what the page gets with what the other commands
// make of the same objects.
func TestThePageSaysWhatWhyAndPlanSay(t *testing.T) {
	objects := team()
	f := newFixture(t, objects...).start(t)
	for _, object := range objects {
		foo, ok := object.(*samplev1alpha1.Foo)
		if !ok {
			continue
		}
		s := subjectOf(foo, f, objects)
		why, err := explain.Of(s)
		footest.Must(t, err)
		plan, err := (&report.Plan{Sync: preview.Of(s.Table, foo, s.World, metav1.NewTime(noon))}).Structured()
		footest.Must(t, err)
		got := f.live.detail(named(foo.Name))
		if want := jsonOf(t, why); jsonOf(t, got.Why) != want {
			t.Errorf("%s: why is\n%s\nwant\n%s", foo.Name, jsonOf(t, got.Why), want)
		}
		if want := jsonOf(t, plan); jsonOf(t, got.Why.Next) != want {
			t.Errorf("%s: the plan is\n%s\nwant\n%s", foo.Name, jsonOf(t, got.Why.Next), want)
		}
		if got.Before != report.Ready(foo.Status) || got.Error != "" {
			t.Errorf("%s: the status is %q, %q", foo.Name, got.Before, got.Error)
		}
	}
}

// subjectOf returns what the command why makes of objects.
func subjectOf(foo *samplev1alpha1.Foo, f *fixture, objects []runtime.Object) *explain.Subject {
	s := &explain.Subject{
		Foo: foo, Table: f.live.Table, World: preview.NewWorld(), Below: &cluster.Below{}, Lease: lease(3e9), Now: noon,
		LeaseName: f.live.LeaseNamespace + "/" + f.live.LeaseName,
	}
	for _, object := range objects {
		switch object := object.(type) {
		case *appsv1.ReplicaSet:
			s.Below.ReplicaSets = append(s.Below.ReplicaSets, object)
		case *corev1.Pod:
			s.Below.Pods = append(s.Below.Pods, object)
		case *corev1.Event:
			s.Below.Events = append(s.Below.Events, object)
		case footest.Object:
			for _, row := range s.Table {
				if _, isFoo := object.(*samplev1alpha1.Foo); !isFoo && footest.Primary.Is(object) {
					s.World.Add(row.Resource, object)
				}
			}
		}
	}
	return s
}

// TestThePlanHasTheStatusBeforeAndAfter checks the words and the difference.
func TestThePlanHasTheStatusBeforeAndAfter(t *testing.T) {
	f := newFixture(t, team()...).start(t)
	footest.Must(t, f.kube.Tracker().Delete(footest.Primary.Resource, footest.Namespace, "blog"))
	s := f.open(t, "blog")
	got := await(t, s, "detail", func(d *detailView) bool { return d.After != "" })
	if len(got.Why.Next.Writes) != 1 || !strings.Contains(got.Before, "ready: ") || !strings.Contains(got.After, "not ready, ") ||
		!strings.Contains(got.Diff, "\n-  reason: Available\n") {
		t.Errorf("it says %q, then %q, and the difference\n%s", got.Before, got.After, got.Diff)
	}
}

// forbid makes a fake API server refuse all reads of a resource.
func forbid(fake *clienttesting.Fake, resource string) {
	refuse := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no right"))
	}
	fake.PrependReactor("list", resource, refuse)
}

// TestMissingPermissions checks that the page works without some, and says which.
func TestMissingPermissions(t *testing.T) {
	f := newFixture(t, team()...)
	for _, resource := range []string{"replicasets", "pods", "events"} {
		forbid(&f.kube.Fake, resource)
	}
	f.kube.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", errors.New("no right"))
	})
	f.start(t)
	got := f.live.detail(named("shop"))
	said := jsonOf(t, got.Why.Missing)
	for _, resource := range []string{"replicasets.apps", "pods", "events"} {
		if !strings.Contains(said, "the permission to list and watch "+resource+" is missing") {
			t.Errorf("%s: it says %s", resource, said)
		}
	}
	if len(got.Why.Has) != 1 || got.Why.Has[0].Below != nil || f.live.list().Controller.State != stateUnknown {
		t.Errorf("it has %+v, and the controller is %+v", got.Why.Has, f.live.list().Controller)
	}
}

// TestWithoutFoosThereIsNoPage checks that the start fails, and says what is missing.
func TestWithoutFoosThereIsNoPage(t *testing.T) {
	for resource, want := range map[string]string{
		"foos":                            "the permission to list and watch foos.samplecontroller.k8s.io is missing",
		footest.Primary.Resource.Resource: "the permission to list and watch " + footest.Primary.Resource.GroupResource().String() + " is missing",
	} {
		f := newFixture(t)
		forbid(&f.foo.Fake, resource)
		forbid(&f.kube.Fake, resource)
		live, err := NewLive(Options{Cluster: &cluster.Cluster{Kube: f.kube, Foo: f.foo}, Table: preview.Table("x"), Now: metav1.Now().Local})
		footest.Must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err = live.Start(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the start ended with %v, want %q", resource, err, want)
		}
	}
}

// TestALostServerIsAProblem checks that the page says so at once, and until it is over.
func TestALostServerIsAProblem(t *testing.T) {
	f := newFixture(t, team()...).start(t)
	var isLost atomic.Bool
	f.kube.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return isLost.Load(), nil, &url.Error{Op: "Get", URL: "https://api", Err: syscall.ECONNREFUSED}
	})
	for _, lost := range []bool{true, false} {
		isLost.Store(lost)
		f.live.readLease(t.Context())
		problems := f.live.list().Problems
		if lost && (len(problems) != 1 || !strings.Contains(problems[0], "the API server does not answer since 12:00:00: ")) || !lost && len(problems) > 0 {
			t.Errorf("lost is %t, and the problems are %q", lost, problems)
		}
	}
}

// TestTheControllersState checks what the Lease says.
func TestTheControllersState(t *testing.T) {
	for want, objects := range map[string][]runtime.Object{
		stateRunning: {lease(3e9)}, stateStopped: {lease(60e9)}, stateUnknown: nil,
	} {
		f := newFixture(t, objects...).start(t)
		if got := f.live.list(); got.Controller.State != want {
			t.Errorf("got %+v, want %s", got.Controller, want)
		}
	}
}

// TestHostileTextIsOnlyText checks that names and messages can't end a script or an event.
func TestHostileTextIsOnlyText(t *testing.T) {
	const hostile = "</script><img src=x onerror=alert(1)>\n\ndata: x\u2028"
	f := newFixture(t, team()...).start(t)
	f.setMessage(t, "blog", metav1.ConditionFalse, "Broken", hostile)
	s := f.open(t, "blog")
	for s.Scan() {
		if strings.ContainsAny(s.Text(), "<>\u2028") {
			t.Fatalf("a line has %s", s.Text())
		}
		if strings.HasPrefix(s.Text(), "data: x") {
			t.Fatal("a message made an event")
		}
		if strings.Contains(s.Text(), "onerror") && strings.HasPrefix(s.Text(), `data: {"namespace":"team-a","name":"blog"`) {
			break
		}
	}
	footest.Must(t, s.Err())
}

// noon is the clock of the tests.
var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// fixture is a page of a cluster that has objects.
type fixture struct {
	kube   *kubefake.Clientset
	foo    *foofake.Clientset
	live   *Live
	server *Server
	// writeTimeout is that of the server; 0 is the usual one.
	writeTimeout time.Duration
	// stop ends the server, and returns its error.
	stop func() error
}

// newFixture returns a fixture before its start.
func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	f := &fixture{kube: kubefake.NewClientset(), foo: foofake.NewSimpleClientset()}
	for _, object := range objects {
		var err error
		if foo, ok := object.(*samplev1alpha1.Foo); ok {
			err = f.foo.Tracker().Create(footest.FoosResource, foo, foo.Namespace)
		} else {
			err = f.kube.Tracker().Add(object)
		}
		footest.Must(t, err)
	}
	return f
}

// start starts the page.
func (f *fixture) start(t *testing.T, change ...func(*Options)) *fixture {
	t.Helper()
	o := Options{
		Cluster: &cluster.Cluster{Namespace: footest.Namespace, Kube: f.kube, Foo: f.foo}, Table: preview.Table(options.DefaultImage),
		LeaseNamespace: names.Controller, LeaseName: names.Controller, Now: func() time.Time { return noon },
	}
	for _, c := range change {
		c(&o)
	}
	// A fake API server loses what changes between a list and the watch after it.
	watching := make(chan struct{}, 1)
	f.foo.PrependWatchReactor("foos", func(action clienttesting.Action) (bool, watch.Interface, error) {
		defer func() { watching <- struct{}{} }()
		w, err := f.foo.Tracker().Watch(action.GetResource(), action.GetNamespace())
		return true, w, err
	})
	live, err := NewLive(o)
	footest.Must(t, err)
	live.leasePeriod = time.Hour // what the tests see is not due to the clock
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	footest.Must(t, live.Start(ctx))
	<-watching
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	footest.Must(t, err)
	server, err := New(live, listener.Addr())
	footest.Must(t, err)
	if f.writeTimeout > 0 {
		server.writeTimeout = f.writeTimeout
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	f.live, f.server, f.stop = live, server, func() error { cancel(); return <-ended }
	return f
}

// setMessage changes the condition of a Foo.
func (f *fixture) setMessage(t *testing.T, name string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	foos := f.foo.SamplecontrollerV1alpha1().Foos(footest.Namespace)
	foo, err := foos.Get(t.Context(), name, metav1.GetOptions{})
	footest.Must(t, err)
	foo.Status.Conditions = footest.Ready(status, reason, message, metav1.NewTime(noon))
	_, err = foos.UpdateStatus(t.Context(), foo, metav1.UpdateOptions{})
	footest.Must(t, err)
}

// lease returns the controller's Lease, renewed some time ago.
func lease(ago time.Duration) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(noon.Add(-ago))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: names.Controller, Namespace: names.Controller},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("node-1_7d3c"), LeaseDurationSeconds: new(int32(15)), RenewTime: &renewed},
	}
}

// team returns Foos of a team, each in another state.
func team() []runtime.Object {
	var objects []runtime.Object
	add := func(name string, age time.Duration, replicas, available int32, change func(*appsv1.Deployment)) *appsv1.Deployment {
		foo := footest.Foo(name, footest.WithChildName(name), footest.WithReplicas(replicas))
		foo.CreationTimestamp = metav1.NewTime(noon.Add(-age))
		child := childOf(foo, available)
		change(child)
		settle(foo, child)
		objects = append(objects, foo, child)
		return child
	}
	add("blog", 12*24*time.Hour, 2, 2, func(*appsv1.Deployment) {})
	add("docs", 9*24*time.Hour, 2, 2, func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.UpdatedReplicas = true, 1 })
	const quota = `pods "shop-6bf54-x7drl" is forbidden: exceeded quota: team-a, requested: pods=1, used: pods=5, limited: pods=5`
	shop := add("shop", 4*time.Hour, 3, 1, func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: quota}}
	})
	objects = append(objects, below(shop, quota)...)
	add("survey", 40*time.Second, 2, 0, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 })
	add("wiki", 3*time.Hour, 1, 1, func(d *appsv1.Deployment) { d.OwnerReferences, d.ManagedFields = nil, nil })
	return append(objects, lease(3*time.Second))
}

// childOf returns the child that a Foo asks for, with some of its Pods.
func childOf(foo *samplev1alpha1.Foo, available int32) *appsv1.Deployment {
	child := footest.Deployment(foo.Name, footest.Named(foo.Name), footest.ScaledTo(*foo.Spec.Replicas))
	child.UID = types.UID("uid-of-child-" + foo.Name)
	child.CreationTimestamp = foo.CreationTimestamp
	child.Status.Replicas, child.Status.UpdatedReplicas = *foo.Spec.Replicas, *foo.Spec.Replicas
	child.Status.ReadyReplicas, child.Status.AvailableReplicas = available, available
	written := foo.CreationTimestamp
	child.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: names.Controller, Operation: metav1.ManagedFieldsOperationUpdate, Time: &written,
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{},"f:controller":{}}},` +
			`"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{"f:image":{},"f:name":{}}}}}}}`),
	}}
	return child
}

// settle gives a Foo the status that a controller has given it, five minutes ago.
func settle(foo *samplev1alpha1.Foo, child preview.Object) {
	table, world := preview.Table(options.DefaultImage), preview.NewWorld()
	world.Add(table[0].Resource, child)
	at := metav1.NewTime(noon.Add(-5 * time.Minute))
	if at.Before(&foo.CreationTimestamp) {
		at = foo.CreationTimestamp
	}
	foo.Status = preview.Of(table, foo, world, at).Status
}

// below returns a ReplicaSet with a Pod that fails to create more, and its Event.
func below(child *appsv1.Deployment, failure string) []runtime.Object {
	meta := func(name string, uid types.UID, controller metav1.Object, kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: name, Namespace: child.Namespace, UID: uid, CreationTimestamp: child.CreationTimestamp,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(controller, appsv1.SchemeGroupVersion.WithKind(kind))},
		}
	}
	set := &appsv1.ReplicaSet{
		ObjectMeta: meta(child.Name+"-6bf54", "uid-set", child, "Deployment"),
		Spec:       appsv1.ReplicaSetSpec{Replicas: child.Spec.Replicas},
		Status:     appsv1.ReplicaSetStatus{Replicas: 1, AvailableReplicas: 1},
	}
	pod := &corev1.Pod{ObjectMeta: meta(set.Name+"-cdsh6", "uid-pod", set, "ReplicaSet"), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: set.Name + ".1", Namespace: child.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Name: set.Name, UID: set.UID},
		Type:           corev1.EventTypeWarning, Reason: "FailedCreate", Message: fmt.Sprintf("Error creating: %s", failure),
		LastTimestamp: metav1.NewTime(noon.Add(-90 * time.Second)),
	}
	return []runtime.Object{set, pod, event}
}
