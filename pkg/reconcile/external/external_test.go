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

// registrar is the external system. It lists its calls as "do a", "undo a".
type registrar struct {
	mu    sync.Mutex
	calls []string
	// answer is what a call for an object does; nil means that it succeeds at once.
	answer map[string]func(context.Context) error
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

func (r *registrar) answers(name string, answer func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer[name] = answer
}

// made returns the calls since the last call of made.
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
	outside, changed = &registrar{answer: map[string]func(context.Context) error{}}, map[string]int{}
	var mu sync.Mutex
	r = NewRunner(Step[*foo]{
		Name:    "registrar",
		Do:      func(ctx context.Context, f *foo) error { return outside.call(ctx, "do", f.Name) },
		Undo:    func(ctx context.Context, f *foo) error { return outside.call(ctx, "undo", f.Name) },
		Timeout: 30 * time.Second,
		Workers: 2,
	}, func(_ context.Context, f *foo) error {
		if f.Name == "stale" {
			return errors.New("the API server has another state")
		}
		return nil
	}, func(key cache.ObjectName) {
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

// advance moves the bubble's clock, and then waits until all goroutines are idle.
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

func TestStepsOneAfterAnother(t *testing.T) {
	down := func(context.Context) error { return errors.New("503") }
	broken := func(context.Context) error { panic("a bug") }
	type step struct {
		object *foo
		answer func(context.Context) error
		then   State
		calls  []string
	}
	second := footest.WithGeneration(2)
	for name, steps := range map[string][]step{
		"once for each generation, and undone at the end": {
			{footest.Foo("a"), nil, Done, []string{"do a"}},
			{footest.Foo("a", second), nil, Done, []string{"do a"}},
			{footest.Foo("a", second, footest.BeingDeleted), nil, Done, []string{"undo a"}},
			{footest.Foo("a", footest.WithFooUID("new")), nil, Done, []string{"do a"}},
		},
		// The failed task is still in back-off when the next one is done.
		"not repeated by an older failure": {
			{footest.Foo("a"), down, Failed, []string{"do a"}},
			{footest.Foo("a", second), nil, Done, []string{"do a"}},
		},
		"a panic is an error of its object": {
			{footest.Foo("b"), nil, Done, []string{"do b"}},
			{footest.Foo("a"), broken, Failed, []string{"do a"}},
		},
		"no call by a stale cache": {
			{footest.Foo("stale"), nil, Failed, nil},
			{footest.Foo("stale", footest.BeingDeleted), nil, Failed, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, outside, changed := start(t)
				for _, step := range steps {
					outside.answers(step.object.Name, step.answer)
					expectState(t, r, step.object, Pending)
					footest.ExpectEqual(t, "calls", step.calls, outside.made())
					expectState(t, r, step.object, step.then)
				}
				last := steps[len(steps)-1]
				footest.ExpectEqual(t, "times that the controller was woken", len(steps), changed["a"]+changed["b"]+changed["stale"])
				if last.answer != nil { // it would be tried again
					r.Forget(footest.KeyOf(last.object))
				}
				advance(time.Hour)
				footest.ExpectEqual(t, "calls after that", []string(nil), outside.made())
				if last.answer == nil {
					expectState(t, r, last.object, last.then)
				}
			})
		})
	}
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

// The user changes or deletes the object during a call.
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

func TestAStepThatIsTurnedOff(t *testing.T) {
	off := NewRunner(Step[*foo]{Name: "registrar"}, nil, nil)
	if off != nil {
		t.Error("a step without a function has a Runner")
	}
	off.Run(t.Context()) // returns at once
	off.Forget(footest.KeyOf(footest.Foo("a")))
}
