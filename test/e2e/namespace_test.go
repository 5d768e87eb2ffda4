// SPDX-License-Identifier: Apache-2.0

// The namespaces of the tests, the clients for the objects in them, and the waits.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/yaml"

	typedfoo "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// runLabel is the label of all namespaces and cluster-scoped objects of a run.
const runLabel = "e2e.samplecontroller.k8s.io/run"

// namespace is a namespace that belongs to one test.
type namespace struct {
	name string
	in   *testCluster
}

// newNamespace creates a namespace that is deleted when the test ends. If the test has
// failed, the contents are shown first. Until then a witness checks what the Foos report.
func newNamespace(t *testing.T) *namespace {
	t.Helper()
	ns := cluster.newNamespace(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if t.Failed() {
			ns.showContent(ctx, t)
		}
		removeBindings(ctx, t, ns.name)
		// tidyUp waits until the namespace is gone.
		if err := cluster.kube.CoreV1().Namespaces().Delete(ctx, ns.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("Deleting namespace %s: %v", ns.name, err)
		}
	})
	ns.witness(t)
	return ns
}

// removeBindings removes the bindings of admission policies to accounts of a namespace.
// Without the account, the API server would look for it at each write of other tests, and
// refuse those for which that takes too long.
func removeBindings(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	bindings := cluster.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	list, err := bindings.List(ctx, metav1.ListOptions{LabelSelector: runLabel + "=" + cluster.run})
	if err != nil {
		t.Errorf("Listing bindings: %v", err)
		return
	}
	for _, binding := range list.Items {
		if ref := binding.Spec.ParamRef; ref != nil && ref.Namespace == namespace {
			if err := bindings.Delete(ctx, binding.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("Deleting the binding %s: %v", binding.Name, err)
			}
		}
	}
}

func (ns *namespace) foos() typedfoo.FooInterface {
	return ns.in.foos.SamplecontrollerV1alpha1().Foos(ns.name)
}

func (ns *namespace) replicaSets() typedappsv1.ReplicaSetInterface {
	return ns.in.kube.AppsV1().ReplicaSets(ns.name)
}

func (ns *namespace) pods() typedcorev1.PodInterface {
	return ns.in.kube.CoreV1().Pods(ns.name)
}

func (ns *namespace) events() typedcorev1.EventInterface {
	return ns.in.kube.CoreV1().Events(ns.name)
}

// showContent logs the Foos, children and events of the namespace.
func (ns *namespace) showContent(ctx context.Context, t *testing.T) {
	if foos, err := ns.foos().List(ctx, metav1.ListOptions{}); err == nil {
		t.Logf("Foos in %s:\n%s", ns.name, show(foos))
	}
	if children, err := ns.children().List(ctx, metav1.ListOptions{}); err == nil {
		t.Logf("%ss in %s:\n%s", footest.Primary, ns.name, show(children))
	}
	events, err := ns.events().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	var lines strings.Builder
	for i := range events.Items {
		event := &events.Items[i]
		fmt.Fprintf(&lines, "  %s %s %s/%s: %s\n", event.Type, event.Reason, event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Message)
	}
	t.Logf("Events in %s:\n%s", ns.name, lines.String())
}

// source lists and watches objects. Every typed client is one.
type source[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

var errNone = errors.New("there is none")

// named selects the object of a name.
func named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
}

// untilList lists objects, and again after each change, until check returns no error. It
// returns the last list and, if that failed the check, the error.
func untilList[L runtime.Object](ctx context.Context, client source[L], opts metav1.ListOptions, check func(L) error) (L, error) {
	for {
		list, err := client.List(ctx, opts)
		if err != nil {
			return list, fmt.Errorf("listing: %w", err)
		}
		objection := check(list)
		if objection == nil {
			return list, nil
		}
		if err := nextChange(ctx, client, opts, list); err != nil {
			return list, fmt.Errorf("%w: %w", err, objection)
		}
	}
}

// nextChange returns when something has changed since a list. The end of the watch counts
// as a change.
func nextChange[L runtime.Object](ctx context.Context, client source[L], opts metav1.ListOptions, list L) error {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	opts.ResourceVersion = accessor.GetResourceVersion()
	watcher, err := client.Watch(ctx, opts)
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer watcher.Stop()
	select {
	case <-watcher.ResultChan():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitList waits until check accepts the list of the selected objects, and returns the
// list. After the timeout it fails the test and shows the last list.
func awaitList[L runtime.Object](t *testing.T, want string, client source[L], opts metav1.ListOptions, check func(L) error) L {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.patience())
	defer cancel()
	list, err := untilList(ctx, client, opts, check)
	if err != nil {
		t.Fatalf("Timed out waiting for: %s\n%v\nLast list:\n%s", want, err, show(list))
	}
	return list
}

// awaitOne waits until the object of a name exists and check accepts it, and returns it.
func awaitOne[T any, L runtime.Object](t *testing.T, want string, client source[L], name string, check func(*T) error) *T {
	t.Helper()
	var found *T
	awaitList(t, want, client, named(name), func(list L) error {
		items, err := itemsOf[T](list)
		if err != nil {
			return err
		}
		if len(items) == 0 {
			return errNone
		}
		found = items[0]
		return check(found)
	})
	return found
}

// awaitGone waits until no object of a name exists.
func awaitGone[L runtime.Object](t *testing.T, client source[L], name string) {
	t.Helper()
	awaitList(t, name+" is gone", client, named(name), func(list L) error {
		if meta.LenList(list) > 0 {
			return fmt.Errorf("%s is still there", name)
		}
		return nil
	})
}

// itemsOf returns pointers to the items of a list.
func itemsOf[T any](list runtime.Object) ([]*T, error) {
	var items []*T
	err := meta.EachListItem(list, func(object runtime.Object) error {
		item, ok := object.(any).(*T)
		if !ok {
			return fmt.Errorf("a list of %T holds a %T", item, object)
		}
		items = append(items, item)
		return nil
	})
	return items, err
}

// show returns an object as YAML, without its managed fields.
func show(object runtime.Object) string {
	_ = meta.EachListItem(object, func(item runtime.Object) error {
		if accessor, err := meta.Accessor(item); err == nil {
			accessor.SetManagedFields(nil)
		}
		return nil
	})
	text, err := yaml.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// receive waits for the next value of a channel, or its end.
func receive[T any](t *testing.T, channel <-chan T) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.patience())
	defer cancel()
	select {
	case value := <-channel:
		return value
	case <-ctx.Done():
		t.Fatalf("Received nothing within %v", cluster.patience())
		panic("unreachable")
	}
}
