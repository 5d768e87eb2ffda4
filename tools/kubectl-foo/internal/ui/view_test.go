// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
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
