// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/options"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/preview"
)

// noon is the clock of the tests.
var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// fixture is a page of a cluster that has objects.
type fixture struct {
	kube   *kubefake.Clientset
	foo    *foofake.Clientset
	live   *Live
	server *Server
	// writeTimeout is that of the server.
	writeTimeout time.Duration
	// stop ends the server, and returns its error.
	stop func() error
}

// newFixture returns a fixture before its start.
func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	f := &fixture{kube: kubefake.NewClientset(), foo: foofake.NewSimpleClientset(), writeTimeout: writeTimeout}
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

// start starts the page, with an audit log unless its path is "".
func (f *fixture) start(t *testing.T, audit string) *fixture {
	t.Helper()
	// A fake API server loses what changes between a list and the watch after it.
	watching := make(chan struct{}, 1)
	f.foo.PrependWatchReactor("foos", func(action clienttesting.Action) (bool, watch.Interface, error) {
		defer func() { watching <- struct{}{} }()
		w, err := f.foo.Tracker().Watch(action.GetResource(), action.GetNamespace())
		return true, w, err
	})
	live, err := NewLive(Options{
		Cluster: &cluster.Cluster{Namespace: footest.Namespace, Kube: f.kube, Foo: f.foo}, Kinds: plan.Kinds(options.DefaultImage),
		LeaseNamespace: names.Controller, LeaseName: names.Controller, Now: func() time.Time { return noon }, Audit: audit,
	})
	footest.Must(t, err)
	live.leasePeriod = time.Hour // what the tests see is not due to the clock
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	footest.Must(t, live.Start(ctx))
	<-watching
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	footest.Must(t, err)
	server := New(live, listener.Addr())
	server.writeTimeout = f.writeTimeout
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	f.live, f.server, f.stop = live, server, func() error { cancel(); return <-ended }
	return f
}

// setMessage changes the condition of a Foo.
func (f *fixture) setMessage(t *testing.T, name, reason, message string) {
	t.Helper()
	foos := f.foo.SamplecontrollerV1alpha1().Foos(footest.Namespace)
	foo, err := foos.Get(t.Context(), name, metav1.GetOptions{})
	footest.Must(t, err)
	foo.Status.Conditions = footest.Ready(metav1.ConditionFalse, reason, message, metav1.NewTime(noon))
	_, err = foos.UpdateStatus(t.Context(), foo, metav1.UpdateOptions{})
	footest.Must(t, err)
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   io.ReadCloser
}

// request makes a request. A header Host is the host of the request.
func (f *fixture) request(t *testing.T, method, path string, headers map[string]string) *answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, "http://"+f.server.address+path, http.NoBody)
	footest.Must(t, err)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	request.Host = headers["Host"]
	response, err := http.DefaultClient.Do(request)
	footest.Must(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return &answer{response.StatusCode, response.Header, response.Body}
}

// get makes a request of the page, about a Foo unless the name is "".
func (f *fixture) get(t *testing.T, path, name string) *answer {
	t.Helper()
	query := url.Values{"token": {f.server.token}, "namespace": {footest.Namespace}, "name": {name}}
	return f.request(t, http.MethodGet, path+"?"+query.Encode(), nil)
}

// open opens the stream of a Foo, or of none.
func (f *fixture) open(t *testing.T, name string) *bufio.Scanner {
	t.Helper()
	got := f.get(t, "/events", name)
	if kind := got.header.Get("Content-Type"); got.status != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("status %d, %s", got.status, kind)
	}
	s := bufio.NewScanner(got.body)
	s.Buffer(nil, 1<<20)
	return s
}

// await reads events of a name until one is as wanted.
func await[T any](t *testing.T, s *bufio.Scanner, name string, isWanted func(*T) bool) *T {
	t.Helper()
	event := ""
	for s.Scan() {
		if after, ok := strings.CutPrefix(s.Text(), "event: "); ok {
			event = after
		}
		if data, ok := strings.CutPrefix(s.Text(), "data: "); ok && event == name {
			view := new(T)
			footest.Must(t, json.Unmarshal([]byte(data), view))
			if isWanted(view) {
				return view
			}
		}
	}
	t.Fatalf("the stream ended: %v", s.Err())
	return nil
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
	objects := []runtime.Object{lease(3 * time.Second)}
	add := func(name string, age time.Duration, replicas, available int32, change func(*appsv1.Deployment)) *appsv1.Deployment {
		foo := footest.Foo(name, footest.WithChildName(name), footest.WithReplicas(replicas))
		foo.CreationTimestamp = metav1.NewTime(noon.Add(-age))
		child := childOf(foo, available)
		change(child)
		// Its status is what a controller makes of the child.
		kind, world := plan.Foos(options.DefaultImage), preview.NewWorld()
		world.Add(kind.Children[0].Resource, child)
		after := preview.Of(kind, foo, world, metav1.NewTime(noon.Add(-min(age, 5*time.Minute)))).After
		foo.Status = *after.GetStatus().(*samplev1alpha1.FooStatus)
		objects = append(objects, foo, child)
		return child
	}
	add("blog", 12*24*time.Hour, 2, 2, func(*appsv1.Deployment) {})
	add("docs", 9*24*time.Hour, 2, 2, func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.UpdatedReplicas = true, 1 })
	const quota = `pods "shop-6bf54-x7drl" is forbidden: exceeded quota: team-a, requested: pods=1, used: pods=5, limited: pods=5`
	shop := add("shop", 4*time.Hour, 3, 1, func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: quota}}
	})
	add("survey", 40*time.Second, 2, 0, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 })
	add("wiki", 3*time.Hour, 1, 1, func(d *appsv1.Deployment) { d.OwnerReferences, d.ManagedFields = nil, nil })
	return append(objects, below(shop, quota)...)
}

// childOf returns the child that a Foo asks for, with some of its Pods.
func childOf(foo *samplev1alpha1.Foo, available int32) *appsv1.Deployment {
	child := footest.Deployment(foo.Name, footest.Named(foo.Name), footest.ScaledTo(*foo.Spec.Replicas))
	child.UID, child.CreationTimestamp = types.UID("uid-of-child-"+foo.Name), foo.CreationTimestamp
	child.Status.Replicas, child.Status.UpdatedReplicas = *foo.Spec.Replicas, *foo.Spec.Replicas
	child.Status.ReadyReplicas, child.Status.AvailableReplicas = available, available
	child.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: names.Controller, Operation: metav1.ManagedFieldsOperationUpdate, Time: new(foo.CreationTimestamp),
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{},"f:controller":{}}},` +
			`"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{"f:image":{},"f:name":{}}}}}}}`),
	}}
	return child
}

// below returns a ReplicaSet with a Pod that fails to create more, and its Event.
func below(child *appsv1.Deployment, failure string) []runtime.Object {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: child.Name + "-6bf54", UID: "uid-set"},
		Spec:       appsv1.ReplicaSetSpec{Replicas: child.Spec.Replicas},
		Status:     appsv1.ReplicaSetStatus{Replicas: 1, AvailableReplicas: 1},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: set.Name + "-cdsh6", UID: "uid-pod"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(child, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	set.Namespace, pod.Namespace = child.Namespace, child.Namespace
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: set.Name + ".1", Namespace: child.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Name: set.Name, UID: set.UID},
		Type:           corev1.EventTypeWarning, Reason: "FailedCreate", Message: "Error creating: " + failure,
		LastTimestamp: metav1.NewTime(noon.Add(-90 * time.Second)),
	}
	return []runtime.Object{set, pod, event}
}
