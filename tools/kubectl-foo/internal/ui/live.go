// SPDX-License-Identifier: Apache-2.0

// What the page shows, kept up to date by informers.

package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/plan"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
	"example.com/sample-controller/tools/preview"
)

const (
	// leasePeriod is how often the controller's Lease is read. Ages on the page are as
	// old at most.
	leasePeriod = 5 * time.Second
	// leaseTimeout limits a read of the Lease.
	leaseTimeout = 4 * time.Second
)

// Options say what the page shows.
type Options struct {
	Cluster *cluster.Cluster
	Kinds   cluster.Kinds
	// LeaseNamespace and LeaseName are those of the controller's Lease.
	LeaseNamespace, LeaseName string
	// Audit is the API server's audit log to follow, or "", and You the user whom its
	// pictures call "you".
	Audit, You string
	// Now is the clock.
	Now func() time.Time
}

// Live is the state of the cluster, up to date.
type Live struct {
	Options

	resources  []*watched
	byResource map[schema.GroupVersionResource]*watched

	changes changes
	writes  *writes // nil without an audit log

	leasePeriod time.Duration
	mu          sync.Mutex
	lease       *coordinationv1.Lease
	leaseErr    error
	// lost is why the API server can't be reached since a time, or nil.
	lost  error
	since time.Time
}

var (
	eventsResource      = corev1.SchemeGroupVersion.WithResource("events")
	podsResource        = corev1.SchemeGroupVersion.WithResource("pods")
	replicaSetsResource = appsv1.SchemeGroupVersion.WithResource("replicasets")
)

// NewLive returns a Live that reads nothing before Start.
func NewLive(o Options) (*Live, error) {
	l := &Live{Options: o, leasePeriod: leasePeriod, byResource: map[schema.GroupVersionResource]*watched{}}
	l.changes.next = make(chan struct{})
	owners := fooinformers.NewSharedInformerFactoryWithOptions(o.Cluster.Foo, 0, fooinformers.WithNamespace(o.Cluster.Namespace))
	var resources []schema.GroupVersionResource
	for _, kind := range o.Kinds {
		informer, err := owners.ForResource(kind.Resource)
		if err != nil {
			return nil, err
		}
		if err := l.watch(kind.Resource, informer.Informer(), false); err != nil {
			return nil, err
		}
		for _, row := range kind.Children {
			resources = append(resources, row.Resource)
		}
	}
	kube := informers.NewSharedInformerFactoryWithOptions(o.Cluster.Kube, 0, informers.WithNamespace(o.Cluster.Namespace))
	for i, resource := range append(resources, eventsResource, podsResource, replicaSetsResource) {
		if l.byResource[resource] != nil {
			continue // of a child
		}
		informer, err := kube.ForResource(resource)
		if err != nil {
			return nil, err
		}
		if err := l.watch(resource, informer.Informer(), i >= len(resources)); err != nil {
			return nil, err
		}
	}
	var err error
	if o.Audit != "" {
		l.writes, err = newWrites(o.Audit, o.You)
	}
	return l, err
}

// watch adds a resource. Without an optional one, parts are missing; without another, there
// is nothing to show.
func (l *Live) watch(resource schema.GroupVersionResource, informer cache.SharedIndexInformer, isOptional bool) error {
	w := &watched{SharedIndexInformer: informer, resource: resource.GroupResource(), isOptional: isOptional}
	l.resources, l.byResource[resource] = append(l.resources, w), w
	tell := l.changes.tell
	handling := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if w.failed(err) {
			tell()
		}
	})
	_, watching := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() },
	})
	if isOptional {
		return errors.Join(handling, watching, informer.SetTransform(withoutManagedFields))
	}
	return errors.Join(handling, watching)
}

// withoutManagedFields saves memory where nothing shows these fields.
func withoutManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// Start reads everything, and then keeps it up to date until ctx is done.
func (l *Live) Start(ctx context.Context) error {
	if l.writes != nil {
		l.writes.read()
		go wait.UntilWithContext(ctx, func(context.Context) {
			if l.writes.read() {
				l.changes.tell()
			}
		}, auditPeriod)
	}
	for _, w := range l.resources {
		go w.RunWithContext(ctx)
	}
	l.readLease(ctx)
	go wait.UntilWithContext(ctx, l.readLease, l.leasePeriod)
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		done := true
		for _, w := range l.resources {
			err := w.problem()
			if err != nil && !w.isOptional {
				return false, err
			}
			done = done && (err != nil || w.HasSynced())
		}
		return done, nil
	})
}

// readLease reads the Lease, and makes the page renew the ages that it shows.
func (l *Live) readLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	lease, err := l.Cluster.Lease(ctx, l.LeaseNamespace, l.LeaseName)
	l.mu.Lock()
	l.lease, l.leaseErr = lease, err
	if isLost := errors.As(err, new(net.Error)); !isLost {
		l.lost = nil
	} else if l.lost == nil {
		l.lost, l.since = err, l.Now()
	}
	l.mu.Unlock()
	l.changes.tell()
}

// subject returns what explains the owner that an argument means. Owner is nil if there is
// none.
func (l *Live) subject(namespace, argument string) *explain.Subject {
	l.mu.Lock()
	s := &explain.Subject{Now: l.Now(), Lease: l.lease, LeaseErr: l.leaseErr, LeaseName: l.LeaseNamespace + "/" + l.LeaseName}
	l.mu.Unlock()
	kind, name, err := l.Kinds.Parse(argument)
	if err != nil {
		return s
	}
	object, exists, err := l.byResource[kind.Resource].GetIndexer().GetByKey(cache.ObjectName{Namespace: namespace, Name: name}.String())
	if err != nil || !exists {
		return s
	}
	s.Kind, s.World = kind, preview.NewWorld()
	s.Owner, _ = object.(plan.Owner)
	for _, row := range kind.Children {
		for _, child := range in[plan.Object](l.byResource[row.Resource], namespace) {
			s.World.Add(row.Resource, child)
		}
	}
	s.Below = &cluster.Below{
		ReplicaSets: in[*appsv1.ReplicaSet](l.byResource[replicaSetsResource], namespace),
		Pods:        in[*corev1.Pod](l.byResource[podsResource], namespace),
		Events:      in[*corev1.Event](l.byResource[eventsResource], namespace),
	}
	for _, w := range l.resources {
		if err := w.problem(); w.isOptional && err != nil {
			s.Below.Missing = append(s.Below.Missing, err)
		}
	}
	return s
}

// problems are why what the page shows may be out of date.
func (l *Live) problems() []string {
	problems := []string{}
	l.mu.Lock()
	if l.lost != nil { // watches are silent about that for some time
		problems = append(problems, fmt.Sprintf("out of date: the API server does not answer since %s: %v", l.since.Format(time.DateTime), l.lost))
	}
	l.mu.Unlock()
	for _, w := range l.resources {
		if err := w.problem(); !w.isOptional && err != nil {
			problems = append(problems, fmt.Sprintf("out of date: %v", err))
		}
	}
	if w := l.writes; w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err != nil {
			problems = append(problems, fmt.Sprintf("the audit log: %v", w.err))
		}
	}
	return problems
}

// changes tells readers that something changed.
type changes struct {
	mu   sync.Mutex
	next chan struct{}
}

// tell tells all that wait.
func (c *changes) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.next)
	c.next = make(chan struct{})
}

// wait returns a channel that is closed after the next change.
func (c *changes) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// watched is an informer that remembers why it can't read its resource.
type watched struct {
	cache.SharedIndexInformer

	resource   schema.GroupResource
	isOptional bool

	mu sync.Mutex
	// err is the last error, and version the resourceVersion that was read before it. A
	// later version means that the error is over.
	err     error
	version string
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

// in returns the objects of a namespace in the order of their names, as a list from the
// API server has them.
func in[T plan.Object](w *watched, namespace string) []T {
	objects, err := w.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil // all informers of factories have this index
	}
	return sorted[T](objects)
}

// sorted returns objects in the order of their namespaces and names.
func sorted[T plan.Object](objects []any) []T {
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		if object, ok := object.(T); ok {
			all = append(all, object)
		}
	}
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return all
}
