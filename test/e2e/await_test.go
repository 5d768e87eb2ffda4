// SPDX-License-Identifier: Apache-2.0

// How the tests wait: by a list and a watch, until a check accepts.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"
)

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
