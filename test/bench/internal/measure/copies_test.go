// SPDX-License-Identifier: Apache-2.0

// Tests that objects copied within etcd are like objects created through the API.

package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	restclient "k8s.io/client-go/rest"

	sampleclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/fixtures"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
)

const (
	copies = 300
	// copiesRest spans several resyncs.
	copiesRest = 3 * time.Second
)

// TestCopies checks that objects copied within etcd can't be distinguished from objects
// created through the API, neither by this controller nor by other clients.
func TestCopies(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testLimits)
	defer cancel()
	bench, ours := underTest(ctx, t)
	err := bench.in(ctx, false, func(s *session) error {
		// In two steps, as the measurement of memory does, and with a last transaction
		// that is not full.
		const first = 280
		err := errors.Join(s.add(ctx, 0, first, false), s.add(ctx, 0, first, true),
			s.add(ctx, first, copies-first, false), s.add(ctx, first, copies-first, true))
		if err != nil {
			return err
		}
		c := clusterWithCopies{s}
		t.Run("lists", c.lists)
		t.Run("same as the first", c.sameAsFirst)
		counter, err := s.counter(ctx)
		if err != nil {
			return err
		}
		found, err := s.restart(ctx, ours.With("ours", resync), counter, TrialOptions{Foos: copies, Restart: copiesRest})
		if err != nil {
			return err
		}
		if results.Writes(found.Calls) > 0 {
			t.Errorf("requests of a controller that starts with the copies: %v, want no writes", found.Calls)
		}
		t.Run("writes", c.writes)
		t.Run("waiting", func(t *testing.T) { c.waiting(t, ours) })
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// clusterWithCopies is a cluster with copied objects.
type clusterWithCopies struct{ *session }

// lists checks that lists from the API server's cache and from etcd have all objects,
// each with a UID of its own.
func (c clusterWithCopies) lists(t *testing.T) {
	for _, options := range []metav1.ListOptions{{ResourceVersion: "0"}, {}} {
		foos, err := c.Foos.SamplecontrollerV1alpha1().Foos("").List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		deployments, err := c.Kube.AppsV1().Deployments("").List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		uids := map[string]bool{}
		for i := range foos.Items {
			uids[string(foos.Items[i].UID)] = true
		}
		for i := range deployments.Items {
			uids[string(deployments.Items[i].UID)] = true
		}
		if n, m := len(foos.Items), len(deployments.Items); n != copies || m != 2*copies || len(uids) != n+m {
			t.Errorf("resourceVersion %q: %d Foos and %d Deployments with %d UIDs, want %d, %d, and as many UIDs",
				options.ResourceVersion, n, m, len(uids), copies, 2*copies)
		}
	}
}

// sameAsFirst checks that copies equal the first object, which was created through the
// API, except for names, UIDs, times and resourceVersions.
func (c clusterWithCopies) sameAsFirst(t *testing.T) {
	all := func(number int) any {
		return normalized(t, c.servedFoo(t, number),
			c.servedDeployment(t, number, fixtures.Name(number)), c.servedDeployment(t, number, fmt.Sprintf("foreign-%d", number)))
	}
	first := all(0)
	for _, number := range []int{1, 57, 279, copies - 1} {
		if served := all(number); !reflect.DeepEqual(first, served) {
			t.Errorf("%s and its Deployments, - the first and + this one:\n%s", fixtures.Name(number), diff.Diff(first, served))
		}
	}
}

// servedFoo returns a Foo as the API server sends it. The typed client would add an empty
// status.
func (c clusterWithCopies) servedFoo(t *testing.T, number int) *unstructured.Unstructured {
	t.Helper()
	request := c.Foos.SamplecontrollerV1alpha1().RESTClient().Get().Namespace(fixtures.Namespace(number))
	return served(t, request.Resource("foos").Name(fixtures.Name(number)))
}

func (c clusterWithCopies) servedDeployment(t *testing.T, number int, name string) *unstructured.Unstructured {
	t.Helper()
	request := c.Kube.AppsV1().RESTClient().Get().Namespace(fixtures.Namespace(number))
	return served(t, request.Resource("deployments").Name(name))
}

func served(t *testing.T, request *restclient.Request) *unstructured.Unstructured {
	t.Helper()
	text, err := request.SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return &object
}

// normalized returns some objects of one namespace with placeholders for the values that
// differ between all objects.
func normalized(t *testing.T, served ...*unstructured.Unstructured) (found any) {
	t.Helper()
	replaced := []string{`"` + served[0].GetNamespace() + `"`, `"NAMESPACE"`}
	for i, object := range served {
		replaced = append(replaced, string(object.GetUID()), fmt.Sprint("UID", i), object.GetName(), fmt.Sprint("NAME", i))
		object.SetResourceVersion("")
		object.SetCreationTimestamp(metav1.Time{})
		fields := object.GetManagedFields()
		for i := range fields {
			fields[i].Time = nil
		}
		object.SetManagedFields(fields)
		conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
		if err != nil {
			t.Fatal(err)
		}
		for _, condition := range conditions {
			condition.(map[string]any)["lastTransitionTime"] = nil
		}
		if len(conditions) > 0 {
			if err := unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions"); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := json.Marshal(served)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(strings.NewReplacer(replaced...).Replace(string(text))), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// writes checks that copies can be updated and deleted.
func (c clusterWithCopies) writes(t *testing.T) {
	const number = 42
	foo, err := c.foos(number).Get(t.Context(), fixtures.Name(number), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deployment, err := c.deployments(number).Get(t.Context(), foo.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	foo.Spec.Replicas, deployment.Spec.Replicas = new(int32(3)), new(int32(3))
	if updated, err := c.foos(number).Update(t.Context(), foo, metav1.UpdateOptions{}); err != nil || updated.Generation != 2 {
		t.Errorf("updating Foo %s: %v, generation %d; want no error, 2", foo.Name, err, updated.GetGeneration())
	}
	if updated, err := c.deployments(number).Update(t.Context(), deployment, metav1.UpdateOptions{}); err != nil || updated.Generation != 2 {
		t.Errorf("updating Deployment %s: %v, generation %d; want no error, 2", foo.Name, err, updated.GetGeneration())
	}
	if err := c.foos(number).Delete(t.Context(), foo.Name, *metav1.NewPreconditionDeleteOptions(string(foo.UID))); err != nil {
		t.Errorf("deleting Foo %s: %v", foo.Name, err)
	}
	if err := c.deployments(number).Delete(t.Context(), foo.Name, *metav1.NewPreconditionDeleteOptions(string(deployment.UID))); err != nil {
		t.Errorf("deleting Deployment %s: %v", foo.Name, err)
	}
	_, errFoo := c.foos(number).Get(t.Context(), foo.Name, metav1.GetOptions{})
	_, errDeployment := c.deployments(number).Get(t.Context(), foo.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(errFoo) || !apierrors.IsNotFound(errDeployment) {
		t.Errorf("reading Foo %s and its Deployment after their deletion: %v, %v; want not found", foo.Name, errFoo, errDeployment)
	}
}

// waiting checks that copied Foos without a status equal the first of them, and that the
// controller makes all of them converge.
func (c clusterWithCopies) waiting(t *testing.T, ours program.Program) {
	const first, n = 1000, 2*50 + 2 // two full transactions between the first and the last
	waiting, err := fixtures.WaitingFoos(t.Context(), c.Cluster, fixtures.Namespace, first, n)
	if err != nil {
		t.Fatal(err)
	}
	like := normalized(t, c.servedFoo(t, first))
	for i, made := range waiting {
		foo := c.servedFoo(t, first+i)
		if foo.GetUID() != made.UID {
			t.Errorf("%s is served with UID %s, want %s", foo.GetName(), foo.GetUID(), made.UID)
		}
		if served := normalized(t, foo); !reflect.DeepEqual(like, served) {
			t.Fatalf("%s, - the first and + this one:\n%s", made.Name, diff.Diff(like, served))
		}
	}
	running, times, err := c.converge(t.Context(), ours, waiting)
	if err != nil {
		t.Fatal(err)
	}
	running.Stop()
	if len(times) != n {
		t.Errorf("%d Foos have converged, want %d", len(times), n)
	}
}

func (c clusterWithCopies) foos(number int) sampleclient.FooInterface {
	return c.Foos.SamplecontrollerV1alpha1().Foos(fixtures.Namespace(number))
}

func (c clusterWithCopies) deployments(number int) appsv1client.DeploymentInterface {
	return c.Kube.AppsV1().Deployments(fixtures.Namespace(number))
}
