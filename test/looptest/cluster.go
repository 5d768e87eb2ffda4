// SPDX-License-Identifier: Apache-2.0

package looptest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

// CallTimeout bounds each call of a controller to a Cluster.
const CallTimeout = 30 * time.Second

// Cluster is an API server behind fake clientsets, with what users and other controllers do, and
// what a controller has written. Use it in a testing/synctest bubble.
type Cluster struct {
	T    *testing.T
	Kube *kubefake.Clientset
	Foos *foofake.Clientset
	API  footest.FakeAPI
	// Recorder and Metrics are of the controller.
	Recorder *record.FakeRecorder
	Metrics  *metrics.Metrics
}

// NewCluster returns a Cluster with these objects.
func NewCluster(t *testing.T, world ...runtime.Object) *Cluster {
	t.Helper()
	c := &Cluster{T: t, Kube: kubefake.NewClientset(), Foos: foofake.NewSimpleClientset(), Recorder: newRecorder(), Metrics: newMetrics()}
	for _, object := range world {
		object := object.(footest.Object)
		tracker, resource := c.placeOf(object)
		footest.Must(t, tracker.Create(resource, object, object.GetNamespace()))
	}
	c.API.Serve(t, &c.Kube.Fake, c.Kube.Tracker())
	c.API.Serve(t, &c.Foos.Fake, c.Foos.Tracker())
	return c
}

func newRecorder() *record.FakeRecorder { return record.NewFakeRecorder(1000) }
func newMetrics() *metrics.Metrics      { return metrics.New("sample-controller", "Foo") }

// Clients returns the clients of another process, whose informers have not started.
func (c *Cluster) Clients() kinds.Clients {
	return kinds.Clients{
		Kube: c.Kube, Custom: c.Foos,
		KubeInformers: kubeinformers.NewSharedInformerFactory(c.Kube, 0), CustomInformers: fooinformers.NewSharedInformerFactory(c.Foos, 0),
	}
}

// KindOf returns a kind of the program.
func KindOf(owner *footest.OwnerRow, clients kinds.Clients) *table.Kind {
	all := kinds.All(clients, kinds.Options{Image: footest.DefaultImage})
	return all[slices.IndexFunc(all, func(kind *table.Kind) bool { return kind.Resource == owner.Resource })]
}

// On calls react for each call of a verb on a resource, before the API server receives it. If
// react returns an error, that is the response. A subresource counts as its resource.
func (c *Cluster) On(verb, resource string, react func(action clienttesting.Action) error) {
	reaction := func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := react(action)
		return err != nil, nil, err
	}
	c.Kube.PrependReactor(verb, resource, reaction)
	c.Foos.PrependReactor(verb, resource, reaction)
}

// Refusal counts calls, and refuses them until it is over.
type Refusal struct {
	Calls atomic.Int32
	Over  atomic.Bool
}

// Refuse makes the API server respond to each call of a verb on a resource with an error.
func (c *Cluster) Refuse(verb, resource string, err error) *Refusal {
	r := &Refusal{}
	c.On(verb, resource, func(clienttesting.Action) error {
		if r.Calls.Add(1); r.Over.Load() {
			return nil
		}
		return err
	})
	return r
}

// FailTimes makes the API server respond to the first calls of a verb on a resource with an
// error.
func (c *Cluster) FailTimes(times int32, verb, resource string, err error) {
	c.OnFirst(times, verb, resource, func(clienttesting.Action) error { return err })
}

// OnFirst does the same as On, for the first calls.
func (c *Cluster) OnFirst(times int32, verb, resource string, react func(action clienttesting.Action) error) {
	var calls atomic.Int32
	c.On(verb, resource, func(action clienttesting.Action) error {
		if calls.Add(1) > times {
			return nil
		}
		return react(action)
	})
}

// Hold makes the watch of a resource deliver nothing.
func (c *Cluster) Hold(resource string) {
	reaction := func(clienttesting.Action) (bool, watch.Interface, error) { return true, watch.NewRaceFreeFake(), nil }
	c.Kube.PrependWatchReactor(resource, reaction)
	c.Foos.PrependWatchReactor(resource, reaction)
}

// placeOf returns where the API server stores an object.
func (c *Cluster) placeOf(object footest.Object) (clienttesting.ObjectTracker, schema.GroupVersionResource) {
	if footest.IsOwner(object) {
		return c.Foos.Tracker(), footest.OwnerOf(object).Resource
	}
	for _, kind := range c.API.Others {
		if kind.Is(object) {
			return c.Kube.Tracker(), kind.Resource
		}
	}
	return c.Kube.Tracker(), footest.KindOf(object).Resource
}

// Put creates or replaces an object, as a user or another controller does.
func (c *Cluster) Put(object footest.Object) {
	c.T.Helper()
	c.API.Stamp(object)
	tracker, resource := c.placeOf(object)
	err := tracker.Update(resource, object, object.GetNamespace())
	if apierrors.IsNotFound(err) {
		err = tracker.Create(resource, object, object.GetNamespace())
	}
	footest.Must(c.T, err)
}

// DeleteFoo deletes a Foo at once.
func (c *Cluster) DeleteFoo(name string) {
	c.T.Helper()
	footest.Must(c.T, c.API.Delete(c.Foos.Tracker(), footest.FoosResource, footest.Namespace, name))
}

// DeleteChild deletes a child, as a user or the garbage collector does.
func (c *Cluster) DeleteChild(name string) {
	c.T.Helper()
	footest.Must(c.T, c.API.Delete(c.Kube.Tracker(), footest.Primary.Resource, footest.Namespace, name))
}

// StoredChild returns a copy of a child from the API server.
func (c *Cluster) StoredChild(name string) footest.Object {
	c.T.Helper()
	object, err := c.Kube.Tracker().Get(footest.Primary.Resource, footest.Namespace, name)
	footest.Must(c.T, err)
	return object.(footest.Object)
}

// StoredFoo returns a copy of a Foo from the API server.
func (c *Cluster) StoredFoo(name string) *samplev1alpha1.Foo {
	c.T.Helper()
	object, err := c.Foos.Tracker().Get(footest.FoosResource, footest.Namespace, name)
	footest.Must(c.T, err)
	return object.(*samplev1alpha1.Foo)
}

// Actions returns the calls of the controller, in order for each client.
func (c *Cluster) Actions() []clienttesting.Action {
	return append(c.Kube.Actions(), c.Foos.Actions()...)
}

// nameOf returns the name of a call, such as "create deployments" or "update foos/status".
func nameOf(action clienttesting.Action) string {
	resource := action.GetResource().Resource
	if action.GetSubresource() != "" {
		resource += "/" + action.GetSubresource()
	}
	return action.GetVerb() + " " + resource
}

// Count counts the calls with a name since the last TakeWrites.
func (c *Cluster) Count(call string) (count int) {
	for _, action := range c.Actions() {
		if nameOf(action) == call {
			count++
		}
	}
	return count
}

// TakeWrites lists the writes since its last call.
func (c *Cluster) TakeWrites() (writes []string) {
	for _, action := range c.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			writes = append(writes, nameOf(action))
		}
	}
	c.Kube.ClearActions()
	c.Foos.ClearActions()
	return writes
}

// Recorded returns the Events so far, each as "type reason message".
func (c *Cluster) Recorded() (events []string) {
	for len(c.Recorder.Events) > 0 {
		events = append(events, <-c.Recorder.Events)
	}
	return events
}

// ExpectWrites checks the writes since its last call.
func (c *Cluster) ExpectWrites(want ...string) {
	c.T.Helper()
	footest.ExpectEqual(c.T, "the list of writes", want, c.TakeWrites())
}

// ExpectEvents checks the Events since its last call.
func (c *Cluster) ExpectEvents(want ...string) {
	c.T.Helper()
	footest.ExpectEqual(c.T, "the list of events", want, c.Recorded())
}

// ExpectReady checks a Foo's condition Ready, as "status reason of generation", and returns it.
func (c *Cluster) ExpectReady(name, want string) metav1.Condition {
	c.T.Helper()
	foo := c.StoredFoo(name)
	ready := footest.ReadyOf(foo.Status)
	got := fmt.Sprintf("%s %s of %d", ready.Status, ready.Reason, ready.ObservedGeneration)
	if got != want || foo.Status.ObservedGeneration != ready.ObservedGeneration {
		c.T.Errorf("Foo %s is %s (observedGeneration %d, %s), not %s", name, got, foo.Status.ObservedGeneration, ready.Message, want)
	}
	return ready
}

// ExpectMetrics checks that a scrape contains these lines.
func (c *Cluster) ExpectMetrics(what string, want ...string) {
	c.T.Helper()
	answer, request := httptest.NewRecorder(), httptest.NewRequestWithContext(c.T.Context(), http.MethodGet, "/metrics", http.NoBody)
	c.Metrics.Handler().ServeHTTP(answer, request)
	footest.ExpectEqual(c.T, "the code of the answer to a scrape", http.StatusOK, answer.Code)
	lines := slices.DeleteFunc(strings.Split(answer.Body.String(), "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "sample_controller_") || strings.Contains(line, "_bucket{")
	})
	for _, line := range want {
		if !slices.Contains(lines, line) {
			c.T.Errorf("The metrics of the %s lack\n%s\nand have\n%s", what, line, strings.Join(lines, "\n"))
		}
	}
}
