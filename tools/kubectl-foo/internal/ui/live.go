// SPDX-License-Identifier: Apache-2.0

// What the page shows, kept up to date by informers, and the writes of the audit log.

package ui

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
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
	Table   []preview.Row
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

	foos               *watched
	children           []*watched // one for each row of the table
	sets, pods, events *watched
	// below are those of the last three that are no children: without them, parts are
	// missing.
	below []*watched

	changes changes
	history *history
	writes  *writes // nil without an audit log

	leasePeriod time.Duration
	mu          sync.Mutex
	lease       *coordinationv1.Lease
	leaseErr    error
	// lost is why the API server can't be reached since a time, or nil.
	lost  error
	since time.Time
}

// NewLive returns a Live that reads nothing before Start.
func NewLive(o Options) (*Live, error) {
	l := &Live{Options: o, history: newHistory(o.Now), leasePeriod: leasePeriod}
	l.changes.next = make(chan struct{})
	foos := fooinformers.NewSharedInformerFactoryWithOptions(o.Cluster.Foo, 0, fooinformers.WithNamespace(o.Cluster.Namespace))
	kube := informers.NewSharedInformerFactoryWithOptions(o.Cluster.Kube, 0, informers.WithNamespace(o.Cluster.Namespace))
	var err error
	resource := samplev1alpha1.SchemeGroupVersion.WithResource("foos").GroupResource()
	if l.foos, err = newWatched(resource, foos.Samplecontroller().V1alpha1().Foos().Informer(), l.changes.tell); err != nil {
		return nil, err
	}
	if _, err := l.foos.AddEventHandler(l.history.handler()); err != nil {
		return nil, err
	}
	all := map[schema.GroupVersionResource]*watched{}
	of := func(resource schema.GroupVersionResource) (*watched, error) {
		if all[resource] != nil {
			return all[resource], nil
		}
		informer, err := kube.ForResource(resource)
		if err != nil {
			return nil, err
		}
		all[resource], err = newWatched(resource.GroupResource(), informer.Informer(), l.changes.tell)
		return all[resource], err
	}
	for _, row := range o.Table {
		child, err := of(row.Resource)
		if err != nil {
			return nil, err
		}
		l.children = append(l.children, child)
	}
	for resource, w := range map[schema.GroupVersionResource]**watched{
		appsv1.SchemeGroupVersion.WithResource("replicasets"): &l.sets,
		corev1.SchemeGroupVersion.WithResource("pods"):        &l.pods,
		corev1.SchemeGroupVersion.WithResource("events"):      &l.events,
	} {
		isChild := all[resource] != nil
		if *w, err = of(resource); err != nil {
			return nil, err
		}
		if isChild {
			continue
		}
		if err := (*w).SetTransform(withoutManagedFields); err != nil {
			return nil, err
		}
		l.below = append(l.below, *w)
	}
	slices.SortFunc(l.below, func(a, b *watched) int { return strings.Compare(a.resource.String(), b.resource.String()) })
	if o.Audit != "" {
		l.writes, err = newWrites(o.Audit, o.You)
	}
	return l, err
}

// withoutManagedFields saves memory where nothing shows these fields.
func withoutManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// required are the resources without which there is nothing to show.
func (l *Live) required() []*watched { return append([]*watched{l.foos}, l.children...) }

// Start reads everything, and then keeps it up to date until ctx is done.
func (l *Live) Start(ctx context.Context) error {
	if l.writes != nil {
		l.writes.read(l.history)
		go wait.UntilWithContext(ctx, func(context.Context) {
			if l.writes.read(l.history) {
				l.changes.tell()
			}
		}, auditPeriod)
	}
	for _, w := range append(l.required(), l.below...) {
		go w.RunWithContext(ctx)
	}
	l.readLease(ctx)
	go wait.UntilWithContext(ctx, l.readLease, l.leasePeriod)
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		done := true
		for _, w := range l.required() {
			if err := w.problem(); err != nil {
				return false, err
			}
			done = done && w.HasSynced()
		}
		for _, w := range l.below {
			done = done && w.isDecided()
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

// subject returns what explains the Foo of a namespace and name. Foo is nil if there is
// none.
func (l *Live) subject(namespace, name string) *explain.Subject {
	l.mu.Lock()
	s := &explain.Subject{
		Table: l.Table, Now: l.Now(), Lease: l.lease, LeaseErr: l.leaseErr, LeaseName: l.LeaseNamespace + "/" + l.LeaseName,
	}
	l.mu.Unlock()
	object, exists, err := l.foos.GetIndexer().GetByKey(cache.ObjectName{Namespace: namespace, Name: name}.String())
	if err != nil || !exists {
		return s
	}
	s.Foo, _ = object.(*samplev1alpha1.Foo)
	s.World = preview.NewWorld()
	for i, row := range l.Table {
		for _, child := range in[preview.Object](l.children[i], namespace) {
			s.World.Add(row.Resource, child)
		}
	}
	s.Below = &cluster.Below{
		ReplicaSets: in[*appsv1.ReplicaSet](l.sets, namespace),
		Pods:        in[*corev1.Pod](l.pods, namespace),
		Events:      in[*corev1.Event](l.events, namespace),
	}
	for _, w := range l.below {
		if err := w.problem(); err != nil {
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
		problems = append(problems, fmt.Sprintf("out of date: the API server does not answer since %s: %v", clock(l.since, l.Now()), l.lost))
	}
	l.mu.Unlock()
	for _, w := range l.required() {
		if err := w.problem(); err != nil {
			problems = append(problems, fmt.Sprintf("out of date: %v", err))
		}
	}
	if l.writes != nil && l.writes.problem() != "" {
		problems = append(problems, "the audit log: "+l.writes.problem())
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

// auditPeriod is how often the audit log is read.
const auditPeriod = 500 * time.Millisecond

// writes follows an audit log.
type writes struct {
	file audit.Log

	mu    sync.Mutex
	log   timeline.Log
	err   error
	drawn map[cache.ObjectName]*drawing
}

// drawing is the picture of a Foo's timeline.
type drawing struct {
	svg, text []byte
	// version is another one if the picture is.
	version string
	err     error
}

func newWrites(path, you string) (*writes, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return &writes{file: audit.Log{Path: path}, log: timeline.Log{You: you}, drawn: map[cache.ObjectName]*drawing{}}, nil
}

// read reads what was written since the last call, and reports whether the page changes. It
// is not called at the same time by several goroutines. Lines that are not events are
// skipped, and make an error.
func (w *writes) read(h *history) (changed bool) {
	fresh, err := w.file.Next()
	w.mu.Lock()
	defer w.mu.Unlock()
	changed = len(fresh) > 0 || (err == nil) != (w.err == nil)
	w.err = err
	for _, write := range fresh {
		w.log.Add(write)
		h.log(write)
	}
	if len(fresh) > 0 {
		clear(w.drawn)
	}
	return changed
}

func (w *writes) problem() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		return ""
	}
	return w.err.Error()
}

// draw draws the timeline of a Foo.
func (w *writes) draw(foo cache.ObjectName) *drawing {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drawn[foo] == nil {
		w.drawn[foo] = drawingOf(&w.log, foo)
	}
	return w.drawn[foo]
}

func drawingOf(log *timeline.Log, foo cache.ObjectName) *drawing {
	selection, err := timeline.ParseSelection("foos/" + foo.Name)
	if err != nil {
		return &drawing{err: err}
	}
	picture, err := log.Of(foo.Namespace, selection).Picture()
	if err != nil {
		return &drawing{err: err}
	}
	var svg, text bytes.Buffer
	if err := picture.WriteSVG(&svg); err != nil {
		return &drawing{err: err}
	}
	if err := picture.WriteText(&text); err != nil {
		return &drawing{err: err}
	}
	hash := sha256.Sum256(svg.Bytes())
	return &drawing{svg: svg.Bytes(), text: text.Bytes(), version: hex.EncodeToString(hash[:8])}
}
