// SPDX-License-Identifier: Apache-2.0

// What a controller under test is connected to: the API server, informers, the recorder of
// events and the work queue.

package explore

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/wire"
	"example.com/sample-controller/test/footest"
)

// server is the API server of the controller's clientsets.
type server struct{ r *runner }

// Do answers a call.
func (s server) Do(sent *wire.Request) (any, error) {
	if sent.Kind == nil {
		panic(footest.UnknownResource(sent.Resource, s.r.Name))
	}
	r := sent.Request
	switch r.Verb {
	case "patch":
		r.Verb, r.Sent = "update", s.patched(sent)
	case "list": // of what a selector selects; informers list the rest
		resource := slices.Index(s.r.kinds, r.Kind)
		r.Verb, r.Subresource, r.Name, r.Sent = "get", listed, s.r.names[s.r.slotsOf(resource)[0]].name, &metav1.ListOptions{LabelSelector: sent.Selector}
	case "watch": // it has informers for that
		panic("a controller watches by itself")
	}
	return s.r.call(s.r.located(r))
}

// listed is the subresource of a get that is a list.
const listed = "list"

// list answers a list.
func (x explored) list(sent *request) (runtime.Object, error) {
	options := sent.Sent.(*metav1.ListOptions) //nolint:forcetypeassert // it was set so
	selector, err := labels.Parse(options.LabelSelector)
	answer := &wire.List{ResourceVersion: versionText(x.version)}
	for _, at := range x.slotsOf(x.names[sent.slot].resource) {
		if object := x.stored(at); object != nil && err == nil && selector.Matches(labels.Set(object.GetLabels())) {
			answer.Items = append(answer.Items, object)
		}
	}
	return answer, err
}

// patched returns the update that a patch amounts to, with the preconditions of the patch. A
// controller makes it from what it read in the same sync, and the UID and the
// resourceVersion in it say so.
func (s server) patched(sent *wire.Request) runtime.Object {
	read := lastSeen(s.r.sync.answers[:s.r.sync.next], sent.Kind, sent.Name)
	if read == nil {
		panic(fmt.Sprintf("%s %s is patched, and was not read before", sent.Resource, sent.Name))
	}
	patched, err := rows.Patched(read, sent.PatchType, sent.Patch)
	var asks metav1.PartialObjectMetadata
	must(errors.Join(err, json.Unmarshal(sent.Patch, &asks)))
	patched.SetUID(asks.UID)
	patched.SetResourceVersion(asks.ResourceVersion)
	return patched
}

// recorder notes that events on objects were recorded.
type recorder struct {
	record.EventRecorder

	r *runner
}

// Event notes an event.
func (e recorder) Event(runtime.Object, string, string, string) {
	if s := e.r.sync; s == nil || s.live {
		e.r.recorded = true
	}
}

// workQueue is the work queue of an explored controller. It returns the key that the
// explorer chooses. Methods that it does not have panic.
type workQueue struct {
	workqueue.TypedDelayingInterface[cache.ObjectName]
	*scene
	keys

	next cache.ObjectName
	now  func() int64
}

// Add adds a key.
func (q *workQueue) Add(key cache.ObjectName) { q.add(q.owner(key)) }

// AddAfter adds a key later.
func (q *workQueue) AddAfter(key cache.ObjectName, d time.Duration) {
	if d <= 0 {
		q.Add(key)
		return
	}
	owner, at := q.owner(key), q.now()+d.Nanoseconds()
	if q.after[owner] == 0 || at < q.after[owner] {
		q.after[owner] = at
	}
}

// Get returns the key that is synced now.
func (q *workQueue) Get() (key cache.ObjectName, shutdown bool) { return q.next, false }

// Done is called at the end of a sync: a key that was added meanwhile waits since then.
func (q *workQueue) Done(cache.ObjectName) {}

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
