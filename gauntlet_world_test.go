/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/metrics"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

const (
	// settleTime is between the steps of a workload. Without faults everything
	// has come to rest by then.
	settleTime = 5 * time.Second
	// past is long enough for a fault to outlive the next step's change, and the
	// guard against stale caches.
	past = 7 * time.Second
	// shortly outlives retries, but not the settling.
	shortly = time.Second
	// gauntletTimeout is the deadline of each call, and the guard's limit.
	gauntletTimeout = 2 * time.Second
	// gauntletResync is longer than any workload: nothing but events and
	// retries brings the world to its final state.
	gauntletResync = 2 * time.Minute
	// restartTime is how long a crashed controller is away.
	restartTime = 500 * time.Millisecond
)

// moment is a call of a controller, or the arrival of an event: where a fault
// can strike. n counts those that are alike, from 1.
type moment struct {
	verb string
	id   objectID
	n    int
}

func (m moment) String() string {
	if m.id.name == "" { // a list or a watch
		return fmt.Sprintf("%s %s %d", m.verb, m.id.resource, m.n)
	}
	return fmt.Sprintf("%s %s %d", m.verb, m.id, m.n)
}

// world is an API server, what works on it beside users, and the controllers
// under test. It lives in a testing/synctest bubble.
type world struct {
	api     *apiServer
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	// strikeAt chooses the fault, if any, that strikes at a moment.
	strikeAt func(moment) fault
	began    time.Time
	// stepBegan is the version at which the current step began.
	stepBegan atomic.Int64

	mu         sync.Mutex
	sessions   []*session
	admission  admission
	journal    []string
	complaints []string
	moments    []moment
	reached    map[moment]int
	refused    int
	// removed holds, for each Deployment that a controller deleted as surplus,
	// the Foo's UID and generation of then.
	removed map[objectID]string
}

func newWorld(strikeAt func(moment) fault) *world {
	w := &world{
		api: newAPIServer(), strikeAt: strikeAt, began: time.Now(),
		reached: map[moment]int{}, removed: map[objectID]string{},
	}
	w.ctx, w.stop = context.WithCancel(klog.NewContext(context.Background(), klog.New(nil)))
	w.running.Go(func() { newControlPlane(w).run() })
	return w
}

// end stops everything and waits until it has stopped.
func (w *world) end() {
	w.stop()
	w.running.Wait()
}

// startController starts a controller with nothing in its memory. prepare may
// have its session begin with an old view of the world.
func (w *world) startController(prepare func(*session)) {
	s := &session{world: w, heldUntil: map[string]time.Time{}, listedAsOf: map[string]int{}, untold: map[types.UID]int{}}
	s.ctx, s.crash = context.WithCancel(w.ctx)
	w.mu.Lock()
	w.sessions = append(w.sessions, s)
	s.name = fmt.Sprintf("controller %d", len(w.sessions))
	w.mu.Unlock()
	prepare(s)
	w.note("%s starts", s.name)
	w.running.Go(func() {
		defer s.crash()
		if err := s.runController(); err != nil {
			w.complain("%s ended with: %v", s.name, err)
		}
	})
}

// runController is what run does, on a session's clients, until it ends.
func (s *session) runController() error {
	trimmer := newTrimmer(defaultImage)
	kubeInformers := kubeinformers.NewSharedInformerFactoryWithOptions(kubeClient{session: s}, 0, kubeinformers.WithTransform(trimmer.trim))
	fooInformers := fooinformers.NewSharedInformerFactoryWithOptions(fooClient{session: s}, gauntletResync, fooinformers.WithTransform(trimmer.trim))
	deployments, foos := kubeInformers.Apps().V1().Deployments(), fooInformers.Samplecontroller().V1alpha1().Foos()
	controller, err := NewController(Config{
		KubeClient: kubeClient{session: s}, FooClient: fooClient{session: s},
		Deployments: deployments, Foos: foos,
		Recorder: s, Clock: clock.RealClock{}, CallTimeout: gauntletTimeout, Metrics: metrics.New(), Image: defaultImage,
	})
	if err != nil {
		return err
	}
	// client-go's own handler keeps the time of the last error in a variable,
	// and would wait from one bubble's time until another's.
	watchError := func(_ context.Context, _ *cache.Reflector, err error) { s.world.note("%s: informer: %v", s.name, err) }
	for _, informer := range []cache.SharedIndexInformer{deployments.Informer(), foos.Informer()} {
		if err := informer.SetWatchErrorHandlerWithContext(watchError); err != nil {
			return err
		}
	}
	defer func() {
		s.crash()
		kubeInformers.Shutdown()
		fooInformers.Shutdown()
	}()
	kubeInformers.StartWithContext(s.ctx)
	fooInformers.StartWithContext(s.ctx)
	kubeInformers.WaitForCacheSyncWithContext(s.ctx)
	fooInformers.WaitForCacheSyncWithContext(s.ctx)
	if s.ctx.Err() != nil {
		controller.queue.ShutDown()
		return nil
	}
	return controller.Run(s.ctx, s.ctx, 2)
}

// crash ends a controller as SIGKILL does, and has another start a little later.
func (w *world) crash(s *session, prepare func(*session)) {
	if s.kill() {
		return
	}
	w.note("%s crashes", s.name)
	w.running.Go(func() {
		select {
		case <-time.After(restartTime):
			w.startController(prepare)
		case <-w.ctx.Done():
		}
	})
}

func asEver(*session) {}

// reach counts a moment and returns it, and the fault that strikes at it.
func (w *world) reach(verb string, id objectID) (moment, fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := moment{verb: verb, id: id}
	w.reached[kind]++
	kind.n = w.reached[kind]
	w.moments = append(w.moments, kind)
	return kind, w.strikeAt(kind)
}

// committed takes down how a request went.
func (w *world) committed(r *request, err error) {
	w.note("%s: %s -> %s", r.session.name, r.moment, answerOf(err))
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refused++
	}
}

// note adds a line to the journal, which is printed where a test fails.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal = append(w.journal, fmt.Sprintf("%9.4fs  ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// complain notes what must not be.
func (w *world) complain(format string, args ...any) {
	complaint := fmt.Sprintf(format, args...)
	w.note("!!! %s", complaint)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.complaints = append(w.complaints, complaint)
}

// do makes a user's change and lets the world settle.
func (w *world) do(s step) {
	w.note("user: %s", s.name)
	w.stepBegan.Store(int64(w.api.version()))
	s.do(w)
	advance(settleTime)
}
