// SPDX-License-Identifier: Apache-2.0

// Package looptest tests what the loop of controller.go does for kinds that this program does not have: with sets of
// children, objects that an owner names, calls outside the cluster, finalizers, children in other namespaces, and
// objects of others. Each kind is declared beside its tests. They see no more of a controller than its calls,
// what it has written, and its Events.
//
// Its Cluster is also that of the root's own tests.
package looptest

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/kinds"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
)

// Loop makes the controllers of kinds for the API server of a Cluster, with its Recorder, its Metrics and CallTimeout.
type Loop func(of *Cluster, now clock.WithTicker, all ...*table.Kind) (Program, error)

// Program has the controllers of a process.
type Program struct {
	// Run runs all of them until ctx is done.
	Run func(ctx context.Context) error
	// Sync syncs an object of the first kind once. The informers run.
	Sync func(ctx context.Context, key cache.ObjectName) error
	// Remembers reports whether anything is remembered of an object of the first kind.
	Remembers func(owner plan.Owner) bool
}

// Test runs all methods of Loop whose name begins with Test.
func Test(t *testing.T, loop Loop) {
	t.Helper()
	all := reflect.ValueOf(loop)
	for i := range all.NumMethod() {
		if test, ok := reflect.TypeAssert[func(*testing.T)](all.Method(i)); ok {
			t.Run(strings.TrimPrefix(all.Type().Method(i).Name, "Test"), func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	}
}

// fixture is a Cluster with a program, one process of it after the other.
type fixture struct {
	*Cluster

	loop    Loop
	declare func(clients kinds.Clients) *table.Kind
	ctx     context.Context
	kind    *table.Kind
	program Program
	// stopInformers stops those of the last process.
	stopInformers func()
}

// test runs a test of a kind in a testing/synctest bubble. Its informers are idle, and its workers do not run.
func (l Loop) test(t *testing.T, declare func(clients kinds.Clients) *table.Kind, foos []runtime.Object, body func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(4)))
		f := &fixture{Cluster: NewCluster(t, foos...), loop: l, declare: declare, ctx: klog.NewContext(t.Context(), logger)}
		f.API.Others = others
		f.begin()
		t.Cleanup(func() {
			f.stopInformers()
			f.ExpectMetrics("panics", `sample_controller_sync_panics_total 0`)
		})
		body(f)
	})
}

// begin makes another process, whose informers run.
func (f *fixture) begin() {
	f.T.Helper()
	clients := f.Clients()
	f.Recorder, f.Metrics, f.kind = newRecorder(), newMetrics(), f.declare(clients)
	var err error
	f.program, err = f.loop(f.Cluster, clock.RealClock{}, f.kind)
	footest.Must(f.T, err)
	ctx, stop := context.WithCancel(klog.NewContext(f.T.Context(), klog.Logger{})) // a failure shows only the controller's log
	clients.KubeInformers.StartWithContext(ctx)
	clients.CustomInformers.StartWithContext(ctx)
	f.stopInformers = func() {
		stop()
		clients.KubeInformers.Shutdown()
		clients.CustomInformers.Shutdown()
	}
	clients.KubeInformers.WaitForCacheSyncWithContext(ctx)
	clients.CustomInformers.WaitForCacheSyncWithContext(ctx)
	synctest.Wait() // the watches are open
	f.TakeWrites()
}

// start runs the program. The function that it returns stops it and waits for its end.
func (f *fixture) start() (stop func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- f.program.Run(ctx) }()
	return func() {
		cancel()
		footest.Must(f.T, <-done)
	}
}

// restart starts another process after the last, which has stopped.
func (f *fixture) restart() (stop func()) {
	f.T.Helper()
	f.stopInformers()
	f.begin()
	return f.start()
}

// running runs a test of a kind, with the workers, and fails if it isn't silent two hours later.
func (l Loop) running(t *testing.T, declare func(clients kinds.Clients) *table.Kind, foos []runtime.Object, body func(f *fixture)) {
	t.Helper()
	l.test(t, declare, foos, func(f *fixture) {
		defer f.start()()
		advance(time.Minute)
		f.TakeWrites()
		body(f)
		advance(time.Hour)
		f.TakeWrites()
		advance(time.Hour)
		f.ExpectWrites()
	})
}

// sync syncs the Foo "a" once.
func (f *fixture) sync() error {
	return f.program.Sync(f.ctx, footest.KeyOf(footest.Foo("a")))
}

// expectForgotten fails if anything about the Foo "a" is remembered.
func (f *fixture) expectForgotten() {
	f.T.Helper()
	if f.program.Remembers(footest.Foo("a")) {
		f.T.Error("something is still remembered of the Foo a")
	}
}

func world(objects ...runtime.Object) []runtime.Object { return objects }

// advance moves the clock of a test's bubble forward.
var advance = footest.Advance
