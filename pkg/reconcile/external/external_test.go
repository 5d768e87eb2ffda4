// SPDX-License-Identifier: Apache-2.0

// Tests of external calls, on the clock of testing/synctest.

package external

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// live has the objects of the API server.
	live map[string]*foo
}

func (r *registrar) read(_ context.Context, key cache.ObjectName) (*foo, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if live := r.live[key.Name]; live != nil {
		return live, nil
	}
	return nil, apierrors.NewNotFound(footest.FoosResource.GroupResource(), key.Name)
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

// has sets which object of the name the API server has, nil for none.
func (r *registrar) has(name string, live *foo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[name] = live
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

type runner = Runner[*foo, string]

// start runs a Runner of a registrar until the test ends. The API server has the objects of the newest
// Ask, unless live has another. changed counts what it tells.
func start(t *testing.T, change func(call *Call[*foo, string])) (r *runner, outside *registrar, changed map[string]int) {
	t.Helper()
	outside, changed = &registrar{answer: map[string]func(context.Context) error{}, live: map[string]*foo{}}, map[string]int{}
	var mu sync.Mutex
	call := Call[*foo, string]{
		Name: "registrar",
		Do: func(ctx context.Context, f *foo) (string, error) {
			return "entry of " + f.Name, outside.call(ctx, "do", f.Name)
		},
		Undo:    func(ctx context.Context, f *foo) error { return outside.call(ctx, "undo", f.Name) },
		Workers: 2,
	}
	change(&call)
	r = NewRunner(call, Objects[*foo]{Read: outside.read, Changed: func(key cache.ObjectName) {
		mu.Lock()
		defer mu.Unlock()
		changed[key.Name]++
	}})
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
	synctest.Wait()
	return r, outside, changed
}

func asItIs(*Call[*foo, string]) {}

// advance moves the bubble's clock, and then waits until all goroutines are idle.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble this moves the clock
	synctest.Wait()
}

// ask asks for an object that the API server has, too, and lets the workers act.
func (r *registrar) ask(of *runner, object *foo) Answer[string] {
	r.has(object.Name, object)
	answer := of.Ask(object, "")
	synctest.Wait()
	return answer
}

func expectAnswer(t *testing.T, got Answer[string], want string) {
	t.Helper()
	is := "waiting"
	switch {
	case got.Undone:
		is = "undone"
	case got.Known:
		is = got.Value
	}
	if got.Err != nil {
		is += ", failing: " + got.Err.Error()
	}
	footest.ExpectEqual(t, "the answer", want, is)
}

func TestCallsOneAfterAnother(t *testing.T) {
	down := func(context.Context) error { return errors.New("503") }
	broken := func(context.Context) error { panic("a bug") }
	type step struct {
		object *foo
		answer func(context.Context) error
		then   string
		calls  []string
	}
	second := footest.WithGeneration(2)
	for name, steps := range map[string][]step{
		"once for each generation, and undone at the end": {
			{footest.Foo("a"), nil, "entry of a", []string{"do a"}},
			{footest.Foo("a", second), nil, "entry of a", []string{"do a"}},
			{footest.Foo("a", second, footest.BeingDeleted), nil, "undone", []string{"undo a"}},
			{footest.Foo("a", footest.WithFooUID("new")), nil, "entry of a", []string{"do a"}},
		},
		// The failed call is still in back-off when the next one is made.
		"not repeated by an older failure": {
			{footest.Foo("a"), down, "waiting, failing: 503", []string{"do a"}},
			{footest.Foo("a", second), nil, "entry of a", []string{"do a"}},
		},
		"a panic is an error of its object": {
			{footest.Foo("b"), nil, "entry of b", []string{"do b"}},
			{footest.Foo("a"), broken, "waiting, failing: panic: a bug", []string{"do a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, outside, changed := start(t, asItIs)
				for _, step := range steps {
					outside.answers(step.object.Name, step.answer)
					expectAnswer(t, outside.ask(r, step.object), "waiting")
					footest.ExpectEqual(t, "calls", step.calls, outside.made())
					expectAnswer(t, outside.ask(r, step.object), step.then)
				}
				last := steps[len(steps)-1]
				footest.ExpectEqual(t, "times that the controller was woken", len(steps), changed["a"]+changed["b"])
				if last.answer != nil { // it would be tried again
					r.Forget(footest.KeyOf(last.object))
				}
				advance(time.Hour)
				footest.ExpectEqual(t, "calls after that", []string(nil), outside.made())
			})
		})
	}
}

// With a stale cache, a call could be made for an object that is gone.
func TestNoCallByAStaleCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside, changed := start(t, asItIs)
		for name, live := range map[string]*foo{
			"gone": nil, "new": footest.Foo("new", footest.WithFooUID("next")), "going": footest.Foo("going", footest.BeingDeleted),
			"changed": footest.Foo("changed", footest.WithGeneration(2)),
		} {
			outside.has(name, live)
			expectAnswer(t, r.Ask(footest.Foo(name), ""), "waiting")
		}
		advance(time.Hour)
		expectAnswer(t, r.Ask(footest.Foo("gone"), ""), "waiting")
		footest.ExpectEqual(t, "calls", []string(nil), outside.made())
		footest.ExpectEqual(t, "objects of which something is known", 0, len(changed))
		expectAnswer(t, outside.ask(r, footest.Foo("changed", footest.WithGeneration(2))), "waiting")
		footest.ExpectEqual(t, "calls", []string{"do changed"}, outside.made())
	})
}

// A controller that ends before it runs has started no goroutine.
func TestACallThatIsAskedForBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := make(chan string, 1)
		call := Call[*foo, string]{Do: func(_ context.Context, f *foo) (string, error) { made <- f.Name; return "", nil }}
		objects := Objects[*foo]{
			Read:    func(context.Context, cache.ObjectName) (*foo, error) { return footest.Foo("a"), nil },
			Changed: func(cache.ObjectName) {},
		}
		NewRunner(call, objects)
		r := NewRunner(call, objects)
		expectAnswer(t, r.Ask(footest.Foo("a"), ""), "waiting")
		go r.Run(t.Context())
		footest.ExpectEqual(t, "the object of the call", "a", <-made)
	})
}

func TestAFailedCallIsMadeAgainAfterSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside, changed := start(t, asItIs)
		attempt := 0
		outside.answers("a", func(context.Context) error { attempt++; return fmt.Errorf("503, request %d", attempt) })
		outside.ask(r, footest.Foo("a"))
		expectAnswer(t, outside.ask(r, footest.Foo("a")), "waiting, failing: 503, request 1")
		outside.made()
		advance(firstRetry * 8 / 10)
		footest.ExpectEqual(t, "calls within two seconds", []string(nil), outside.made())
		advance(time.Hour)
		if calls := len(outside.made()); calls < 12 || calls > 20 {
			t.Errorf("%d calls in an hour", calls)
		}
		if changed["a"] < 2 || changed["a"] > 7 {
			t.Errorf("in an hour, the controller was woken %d times by errors with other texts", changed["a"])
		}
		before := changed["a"]
		outside.answers("a", nil)
		advance(6 * time.Minute)
		expectAnswer(t, outside.ask(r, footest.Foo("a")), "entry of a")
		footest.ExpectEqual(t, "times that the controller was woken", before+1, changed["a"])
	})
}

func TestASlowCallHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside, _ := start(t, asItIs)
		for i := range 20 {
			name := fmt.Sprint("slow-", i)
			outside.answers(name, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			outside.ask(r, footest.Foo(name, func(f *foo) { f.Namespace = fmt.Sprint("team-", i%10) }))
		}
		outside.ask(r, footest.Foo("b"))
		advance(time.Second)
		expectAnswer(t, outside.ask(r, footest.Foo("b")), "entry of b")
		advance(DefaultTimeout)
		slow := footest.Foo("slow-0", func(f *foo) { f.Namespace = "team-0" })
		if answer := outside.ask(r, slow); !errors.Is(answer.Err, context.DeadlineExceeded) {
			t.Errorf("after its deadline a call is %+v", answer)
		}
	})
}

// A stop waits for calls, but not for one that does not return.
func TestAStopDuringACallThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := Call[*foo, string]{Do: func(context.Context, *foo) (string, error) { <-time.After(time.Hour); return "", nil }}
		r := NewRunner(call, Objects[*foo]{
			Read:    func(context.Context, cache.ObjectName) (*foo, error) { return footest.Foo("a"), nil },
			Changed: func(cache.ObjectName) { t.Error("something is known after the stop") },
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.Run(ctx)
		}()
		r.Ask(footest.Foo("a"), "")
		advance(time.Second)
		stop()
		begin := time.Now()
		<-ended
		footest.ExpectEqual(t, "how long the stop takes", stopTimeout, time.Since(begin))
		advance(time.Hour)
	})
}
