// SPDX-License-Identifier: Apache-2.0

// One resource that is watched.

package ui

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/preview"
)

// watched is an informer that remembers why it can't read its resource.
type watched struct {
	cache.SharedIndexInformer

	resource schema.GroupResource

	mu sync.Mutex
	// err is the last error, and version the resourceVersion that was read before it. A
	// later version means that the error is over.
	err     error
	version string
}

// newWatched returns a watched resource, which calls changed after each change or error.
func newWatched(resource schema.GroupResource, informer cache.SharedIndexInformer, changed func()) (*watched, error) {
	w := &watched{SharedIndexInformer: informer, resource: resource}
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if w.failed(err) {
			changed()
		}
	})
	if err != nil {
		return nil, err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	return w, err
}

// failed remembers an error, unless it is one after which the informer goes on at once.
func (w *watched) failed(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.version = cluster.Describe(err, "list and watch", w.resource.String()), w.LastSyncResourceVersion()
	return true
}

// problem returns why the resource can't be read at present, or nil.
func (w *watched) problem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil && w.LastSyncResourceVersion() == w.version {
		return w.err
	}
	return nil
}

// isDecided reports whether the resource has been read, or can't be.
func (w *watched) isDecided() bool { return w.HasSynced() || w.problem() != nil }

// in returns the objects of a namespace in the order of their names, as a list from the
// API server has them.
func in[T preview.Object](w *watched, namespace string) []T {
	objects, err := w.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil // all informers of factories have this index
	}
	return sorted[T](objects)
}

// sorted returns objects in the order of their namespaces and names.
func sorted[T preview.Object](objects []any) []T {
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		if object, ok := object.(T); ok {
			all = append(all, object)
		}
	}
	slices.SortFunc(all, func(a, b T) int {
		if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
			return c
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	return all
}
