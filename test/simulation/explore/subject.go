// SPDX-License-Identifier: Apache-2.0

// The controller under test: one that runs, which is put into any of its states before each
// step, and whose state is read after it.

package explore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/wire"
)

// Parts are what a controller under test is to be made of.
type Parts struct {
	Kubernetes      kubernetes.Interface
	Custom          clientset.Interface
	KubeInformers   kubeinformers.SharedInformerFactory
	CustomInformers fooinformers.SharedInformerFactory
	Recorder        record.EventRecorder
	Clock           clock.WithTicker
	// Queue takes the place of the work queue.
	Queue workqueue.TypedDelayingInterface[cache.ObjectName]
	// Version is the version of the owners' API that the controller's release uses, or "" for
	// that of this release.
	Version string
}

// Subject is a controller under test, with its event handlers registered.
type Subject struct {
	// Controller is where to look for what it remembers, or nil if it remembers nothing, and State
	// describes that.
	Controller any
	State      State
	// ProcessNextWorkItem syncs the key that the queue returns.
	ProcessNextWorkItem func(ctx context.Context) bool
}

// New makes a controller.
type New func(parts Parts) (Subject, error)

// CallTimeout is the deadline of calls that the controller must have.
const CallTimeout = 2 * time.Second

// runner runs a controller, for one goroutine.
type runner struct {
	*scene
	Subject

	*remembered

	// releases are the runners of each release. The first one has them.
	releases []*runner

	ctx       context.Context
	clock     *clocktesting.FakeClock
	informers []*informer
	queue     *workQueue
	// sync is the one in progress, or nil.
	sync *syncRun
	// recorded is true if the controller recorded an event on an object in this step.
	recorded bool
}

// newRunner returns a runner of the first release, with one of each.
func newRunner(s *scene, create New) (*runner, error) {
	var releases []*runner
	for _, version := range s.Releases {
		r, err := newRunnerOf(s, create, version)
		if err != nil {
			return nil, err
		}
		releases = append(releases, r)
	}
	releases[0].releases = releases
	return releases[0], nil
}

// of returns the runner of a controller in a state.
func (r *runner) of(current *state, controller int) *runner {
	return r.releases[r.release(current, controller)]
}

// release returns the number of the release that a controller has in a state.
func (s *scene) release(current *state, controller int) int {
	if s.Controllers == 1 {
		controller = int(s.Crashes - current.crashes)
	}
	return min(controller, len(s.Releases)-1)
}

func newRunnerOf(s *scene, create New, version string) (*runner, error) {
	r := &runner{scene: s, ctx: klog.NewContext(context.Background(), klog.New(nil)), clock: clocktesting.NewFakeClock(epoch)}
	r.queue = &workQueue{scene: s, now: func() int64 { return r.clock.Since(epoch).Nanoseconds() }}
	client := wire.NewClient(s.Owner, server{r})
	kube, foos := kubernetes.New(client), clientset.New(client)
	parts := Parts{
		Kubernetes:      kube,
		Custom:          foos,
		KubeInformers:   kubeinformers.NewSharedInformerFactory(kube, 0),
		CustomInformers: fooinformers.NewSharedInformerFactory(foos, 0),
		Recorder:        recorder{r: r}, Clock: r.clock, Queue: r.queue, Version: version,
	}
	for resource := range s.kinds {
		i, example := newInformer(len(s.names), func(objects ...any) { r.saw(objects) }), s.example(resource, "web")
		r.informers = append(r.informers, i)
		// Registered first, it is the one that the factory hands out for the type.
		parts.KubeInformers.InformerFor(example, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return i })
		parts.CustomInformers.InformerFor(example, func(clientset.Interface, time.Duration) cache.SharedIndexInformer { return i })
	}
	subject, err := create(parts)
	if err != nil {
		return nil, fmt.Errorf("making the controller: %w", err)
	}
	r.Subject = subject
	if r.remembered, err = findRemembered(subject); err != nil {
		return nil, fmt.Errorf("the state of the controller: %w", err)
	}
	return r, nil
}

// example returns an object of a resource as someone creates it.
func (s *scene) example(resource int, name string) rows.Object {
	if resource == 0 {
		return s.Owner.Asking(name, s.Children[0], 1)
	}
	if i := resource - 1 - len(s.Owner.Kinds); i >= 0 {
		return s.Owner.References[i].New(name, 0)
	}
	return s.kinds[resource].ForeignNamed(name)
}

// load puts the controller into a moment.
func (r *runner) load(m *moment) {
	r.clock.SetTime(epoch.Add(time.Duration(m.now)))
	for i, informer := range r.informers {
		informer.show(&m.views[i])
	}
	for owner := range r.Owners {
		r.restore(r.key(slot(owner)), m.memory[owner])
	}
	r.restoreShared(m.memory[len(r.Owners)])
}

// save returns what the controller remembers.
func (r *runner) save(before []*memo) []*memo {
	memory := make([]*memo, len(before))
	for owner := range r.Owners {
		memory[owner] = r.remembered.save(r.key(slot(owner)))
	}
	memory[len(r.Owners)] = r.saveShared()
	for i, was := range before {
		if is := memory[i]; was != nil && is != nil && was.content == is.content && slices.Equal(was.tokens, is.tokens) {
			memory[i] = was
		}
	}
	return memory
}

// tell lets the event handlers of a controller hear of a change.
func (r *runner) tell(x explored, i, resource int, changes ...*notification) {
	c := x.controller(i)
	r.load(&moment{x.now, c.views, c.memory})
	r.queue.keys = c.queue
	for _, change := range changes {
		r.informers[resource].tell(change)
	}
	c.queue, c.memory = r.queue.keys, r.save(c.memory)
}

// syncRun is a sync while it runs. It has the answers that it got before, which are given
// again, and then one more; at the call after that it ends.
type syncRun struct {
	*syncing

	// next is the answer that comes next.
	next int
	seen []*fingerprint
	// live is true from the newest answer on, with the keys of before.
	live    bool
	keys    keys
	pending *request
}

// run runs a sync up to its next call, or to its end. It returns what the sync then is, or
// nil if it has ended.
func (r *runner) run(x explored, i int, key slot, s *syncing) {
	c := x.controller(i)
	r.sync = &syncRun{syncing: s, seen: slices.Clone(s.seen), keys: c.queue}
	r.queue.next, r.recorded = r.key(key), false
	r.queue.keys = keys{after: make([]int64, len(r.Owners))} // for what is repeated
	r.load(&s.began)
	if len(s.answers) == 0 {
		r.becomesLive()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.ProcessNextWorkItem(r.ctx)
	}()
	<-ended
	c.queue, c.memory = r.queue.keys, r.save(c.memory)
	c.syncs[key] = nil
	if r.sync.pending != nil {
		c.syncs[key] = &syncing{began: s.began, answers: s.answers, pending: r.sync.pending, seen: r.sync.seen}
		x.judgeSent(c.syncs[key])
	}
	r.sync = nil
	x.wrote = x.wrote || r.recorded
}

func (r *runner) becomesLive() {
	r.sync.live = true
	r.queue.keys = r.sync.keys
}

// saw notes what the controller read of its caches.
func (r *runner) saw(objects []any) {
	if r.sync == nil || !r.sync.live {
		return
	}
	for _, read := range objects {
		var kept *fingerprint
		if object, ok := read.(apiruntime.Object); ok {
			at, _ := r.slotOf(object)
			kept = r.informers[r.names[at].resource].has[at].keptFingerprint
		}
		r.sync.seen = append(r.sync.seen, kept)
	}
}

// call answers a call of the sync in progress, or ends it there.
func (r *runner) call(sent *request) (apiruntime.Object, error) {
	s := r.sync
	if s.next == len(s.answers) {
		s.pending = sent
		runtime.Goexit()
	}
	a := s.answers[s.next]
	s.next++
	r.load(&a.moment)
	if s.next == len(s.answers) {
		r.becomesLive()
	}
	if a.object == nil {
		return nil, a.err
	}
	return a.object.DeepCopyObject(), a.err
}
