// SPDX-License-Identifier: Apache-2.0

// Tests of external steps, on the clock of testing/synctest.

package external

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

type foo = samplev1alpha1.Foo

// registrar is the outside. Its calls are listed as "do a", "undo a".
type registrar struct {
	mu    sync.Mutex
	calls []string
	// answer is what a call for an object does; nil means that it succeeds at once.
	answer map[string]func(context.Context) error
	// stale has the objects that the API server has in another state.
	stale map[string]error
}

func (r *registrar) call(ctx context.Context, verb, name string) error {
	r.mu.Lock()
	r.calls = append(r.calls, verb+" "+name)
	answer := r.answer[name]
	r.mu.Unlock()
	if answer == nil {
		return nil
	}
	return answer(ctx)
}

// check fails while the API server has another state of an object.
func (r *registrar) check(_ context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stale[name]
}

func (r *registrar) answers(name string, answer func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer[name] = answer
}

// made returns the calls since it was last asked.
func (r *registrar) made() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	made := r.calls
	r.calls = nil
	slices.Sort(made)
	return made
}

// start runs a Runner of a registrar until the test ends. changed counts what it tells.
func start(t *testing.T) (r *Runner[*foo], outside *registrar, changed map[string]int) {
	t.Helper()
	outside, changed = &registrar{answer: map[string]func(context.Context) error{}, stale: map[string]error{}}, map[string]int{}
	var mu sync.Mutex
	r = NewRunner(Step[*foo]{
		Name:    "registrar",
		Do:      func(ctx context.Context, f *foo) error { return outside.call(ctx, "do", f.Name) },
		Undo:    func(ctx context.Context, f *foo) error { return outside.call(ctx, "undo", f.Name) },
		Timeout: 30 * time.Second,
		Workers: 2,
	}, func(ctx context.Context, f *foo) error { return outside.check(ctx, f.Name) }, func(key cache.ObjectName) {
		mu.Lock()
		defer mu.Unlock()
		changed[key.Name]++
	})
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig())))
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return r, outside, changed
}

// advance moves the clock of the bubble, then waits until all goroutines are idle.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble this moves the clock
	synctest.Wait()
}

func expectState(t *testing.T, r *Runner[*foo], object *foo, want State) {
	t.Helper()
	if state, err := r.State(object); state != want {
		t.Errorf("the state of %s is %s (%v), not %s", object.Name, state, err, want)
	}
	synctest.Wait()
}

func TestAStepIsTakenOnceForEachGenerationAndUndoneAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside, changed := start(t)
		for _, step := range []struct {
			object *foo
			calls  []string
		}{
			{footest.Foo("a"), []string{"do a"}},
			{footest.Foo("a", footest.WithGeneration(2)), []string{"do a"}},
			{footest.Foo("a", footest.WithGeneration(2), footest.BeingDeleted), []string{"undo a"}},
			{footest.Foo("a", footest.WithFooUID("new")), []string{"do a"}},
		} {
			expectState(t, r, step.object, Pending)
			footest.ExpectEqual(t, "calls", step.calls, outside.made())
			expectState(t, r, step.object, Done)
			advance(time.Hour)
			footest.ExpectEqual(t, "calls after that", []string(nil), outside.made())
		}
		footest.ExpectEqual(t, "times that the controller was woken", 4, changed["a"])
	})
}

// A controller that ends before it runs has started no goroutine.
func TestAStepThatIsAskedForBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := make(chan string, 1)
		step := Step[*foo]{Do: func(_ context.Context, f *foo) error { made <- f.Name; return nil }, Timeout: time.Second, Workers: 1}
		inSync := func(context.Context, *foo) error { return nil }
		newRunner := func() *Runner[*foo] { return NewRunner(step, inSync, func(cache.ObjectName) {}) }
		newRunner()
		r := newRunner()
		expectState(t, r, footest.Foo("a"), Pending)
		go r.Run(t.Context())
		footest.ExpectEqual(t, "the object of the call", "a", <-made)
	})
}

func TestAFailedStepIsTriedAgainAfterSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside, changed := start(t)
		outside.answers("a", func(context.Context) error { return errors.New("503") })
		expectState(t, r, footest.Foo("a"), Pending)
		expectState(t, r, footest.Foo("a"), Failed)
		outside.made()
		advance(2*time.Second - 1)
		footest.ExpectEqual(t, "calls within two seconds", []string(nil), outside.made())
		advance(time.Hour)
		if calls := len(outside.made()); calls < 12 || calls > 20 {
			t.Errorf("%d calls in an hour", calls)
		}
		footest.ExpectEqual(t, "times that the controller was woken by the same error", 1, changed["a"])

		outside.answers("a", nil)
		advance(5 * time.Minute)
		expectState(t, r, footest.Foo("a"), Done)
		footest.ExpectEqual(t, "times that the controller was woken", 2, changed["a"])
	})
}

// The back-off of the task that failed is still under way when the next one is done.
func TestAStepThatIsDoneIsNotRepeatedByAnOlderFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside, _ := start(t)
		outside.answers("a", func(context.Context) error { return errors.New("503") })
		expectState(t, r, footest.Foo("a"), Pending)
		outside.answers("a", nil)
		changed := footest.Foo("a", footest.WithGeneration(2))
		expectState(t, r, changed, Pending)
		expectState(t, r, changed, Done)
		outside.made()
		advance(time.Hour)
		footest.ExpectEqual(t, "calls", []string(nil), outside.made())
	})
}

func TestASlowStepHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside, _ := start(t)
		outside.answers("slow", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		expectState(t, r, footest.Foo("slow"), Pending)
		expectState(t, r, footest.Foo("b"), Pending)
		expectState(t, r, footest.Foo("b"), Done)
		expectState(t, r, footest.Foo("slow"), Pending)
		advance(30 * time.Second)
		if state, err := r.State(footest.Foo("slow")); state != Failed || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its deadline a call is %s: %v", state, err)
		}
	})
}

// The user changes or deletes the object while a call is under way.
func TestTheResultOfAnOlderTaskIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside, _ := start(t)
		answer := make(chan error)
		outside.answers("a", func(context.Context) error { return <-answer })
		expectState(t, r, footest.Foo("a"), Pending)
		deleted := footest.Foo("a", footest.BeingDeleted)
		expectState(t, r, deleted, Pending)
		answer <- nil
		synctest.Wait()
		expectState(t, r, deleted, Pending)
		answer <- nil
		synctest.Wait()
		expectState(t, r, deleted, Done)
		footest.ExpectEqual(t, "calls", []string{"do a", "undo a"}, outside.made())
	})
}

func TestNoCallIsMadeByAStaleCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside, _ := start(t)
		outside.stale["a"] = errors.New("the Foo is gone")
		for _, object := range []*foo{footest.Foo("a"), footest.Foo("a", footest.BeingDeleted)} {
			expectState(t, r, object, Pending)
			expectState(t, r, object, Failed)
		}
		footest.ExpectEqual(t, "calls", []string(nil), outside.made())
	})
}

func TestAPanicIsAnErrorOfItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside, _ := start(t)
		outside.answers("a", func(context.Context) error { panic("a bug") })
		expectState(t, r, footest.Foo("a"), Pending)
		expectState(t, r, footest.Foo("a"), Failed)
		expectState(t, r, footest.Foo("b"), Pending)
		expectState(t, r, footest.Foo("b"), Done)
	})
}

func TestAForgottenObjectIsNotCalledFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside, _ := start(t)
		outside.answers("a", func(context.Context) error { return errors.New("503") })
		expectState(t, r, footest.Foo("a"), Pending)
		outside.made()
		r.Forget(footest.KeyOf(footest.Foo("a")))
		advance(time.Hour)
		footest.ExpectEqual(t, "calls", []string(nil), outside.made())
	})
}

func TestAStepThatIsTurnedOff(t *testing.T) {
	off := NewRunner(Step[*foo]{Name: "registrar"}, nil, nil)
	if off != nil {
		t.Error("a step without a function has a Runner")
	}
	off.Run(t.Context()) // returns at once
	off.Forget(footest.KeyOf(footest.Foo("a")))
}
