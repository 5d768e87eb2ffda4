// SPDX-License-Identifier: Apache-2.0

// The informers of an explored controller. They have real indexers and the handlers that
// the controller registers, but no reflector: the explorer says what arrives, and when.

package explore

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// informer is an informer of one resource. Methods that it does not have panic.
type informer struct {
	cache.SharedIndexInformer

	store     *recordedStore
	transform cache.TransformFunc
	handlers  []cache.ResourceEventHandler
	// has are the objects of the store, by slot.
	has []*object
}

func newInformer(slots int, seen func(...any)) *informer {
	return &informer{
		store: &recordedStore{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), seen: seen},
		has:   make([]*object, slots),
	}
}

// SetTransform sets what is done to an object before it is stored.
func (i *informer) SetTransform(transform cache.TransformFunc) error {
	i.transform = transform
	return nil
}

// AddIndexers adds indexes.
func (i *informer) AddIndexers(indexers cache.Indexers) error { return i.store.AddIndexers(indexers) }

// GetIndexer returns the store.
func (i *informer) GetIndexer() cache.Indexer { return i.store }

// GetStore returns the store.
func (i *informer) GetStore() cache.Store { return i.store }

// AddEventHandlerWithOptions registers a handler.
func (i *informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return registered{}, nil
}

// registered is the registration of a handler.
type registered struct {
	cache.ResourceEventHandlerRegistration
}

// HasSyncedChecker returns nil: the explorer calls the handlers before the first sync.
func (registered) HasSyncedChecker() cache.DoneChecker { return nil }

// show makes the store that of a view.
func (i *informer) show(v *view) {
	i.store.version = ""
	if v.version > 0 {
		i.store.version = versionText(v.version)
	}
	for at, object := range v.objects {
		switch {
		case i.has[at] == object:
			continue
		case object == nil:
			must(i.store.Delete(i.has[at].cached(i.transform)))
		default:
			must(i.store.Update(object.cached(i.transform)))
		}
		i.has[at] = object
	}
}

// tell calls the event handlers.
func (i *informer) tell(n *notification) {
	for _, handler := range i.handlers {
		switch {
		case n.before == nil:
			handler.OnAdd(n.after.cached(i.transform), n.initial)
		case n.after != nil:
			handler.OnUpdate(n.before.cached(i.transform), n.after.cached(i.transform))
		case n.unknown:
			last := n.before.cached(i.transform)
			handler.OnDelete(cache.DeletedFinalStateUnknown{Key: cache.MetaObjectToName(n.before).String(), Obj: last})
		default:
			handler.OnDelete(n.before.cached(i.transform))
		}
	}
}

// recordedStore is a store that says what is read.
type recordedStore struct {
	cache.Indexer

	version string
	seen    func(...any)
}

// LastStoreSyncResourceVersion returns the version of the newest event.
func (s *recordedStore) LastStoreSyncResourceVersion() string { return s.version }

// GetByKey returns an object.
func (s *recordedStore) GetByKey(key string) (any, bool, error) {
	item, exists, err := s.Indexer.GetByKey(key)
	s.seen(item)
	return item, exists, err
}

// ByIndex returns the objects with a value of an index, by their names.
func (s *recordedStore) ByIndex(index, value string) ([]any, error) {
	items, err := s.Indexer.ByIndex(index, value)
	slices.SortFunc(items, func(a, b any) int {
		return strings.Compare(metaOf(a.(runtime.Object)).GetName(), metaOf(b.(runtime.Object)).GetName()) //nolint:forcetypeassert // it was stored as one
	})
	s.seen(items...)
	return items, err
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
