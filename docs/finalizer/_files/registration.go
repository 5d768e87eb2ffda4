// SPDX-License-Identifier: Apache-2.0

// The registration of Foos outside the cluster: a finalizer, and an external step before
// their children are written.

package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/external"
	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/memory"
	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// registrar returns the step that registers Foos with an HTTP service: replace its calls with
// yours. Without an address there is no step.
func registrar(address string) external.Step[plan.Owner] {
	if address == "" {
		return external.Step[plan.Owner]{}
	}
	call := func(method string, good ...int) func(context.Context, plan.Owner) error {
		return func(ctx context.Context, foo plan.Owner) error {
			entry := fmt.Sprintf("%s/%s/%s?uid=%s", address, foo.GetNamespace(), foo.GetName(), foo.GetUID())
			request, err := http.NewRequestWithContext(ctx, method, entry, http.NoBody)
			if err != nil {
				return err
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if !slices.Contains(good, response.StatusCode) {
				return fmt.Errorf("the registrar answers %s", response.Status)
			}
			return nil
		}
	}
	return external.Step[plan.Owner]{
		Name: "registration", Timeout: 10 * time.Second, Workers: 4,
		Do:   call(http.MethodPut, http.StatusOK, http.StatusCreated, http.StatusNoContent),
		Undo: call(http.MethodDelete, http.StatusOK, http.StatusNoContent, http.StatusNotFound),
	}
}

// register registers a Foo before its children are written. It adds the finalizer before
// the first call to the registrar, and removes it after the last. It does not register a
// suspended Foo, but it does deregister a suspended Foo that is deleted.
func (s *ownerSync) register(ctx context.Context, world *plan.World) error {
	foo := s.owner
	held, terminating, registered := plan.IsHeld(foo), plan.IsTerminating(foo), plan.RegisteredGeneration(foo)
	settled := foo.IsSuspended() || held && registered == foo.GetGeneration()
	if s.registration == nil || terminating && !held || !terminating && settled {
		s.registration.Forget(s.key) // another controller may have made the call
		return nil
	}
	var state external.State
	var refused, unwritten error
	if held {
		state, refused = s.registration.State(foo)
	}
	done := state == external.Done
	if !held || terminating && done {
		if unwritten = s.setFinalizer(ctx, !held); queue.IsExpected(unwritten) {
			return unwritten
		}
		// Before the status is written, so that its event does not wake the key.
		unwritten = s.backoff.Fail(s.key, "finalizer", plan.StatusInputs(foo), unwritten)
	}
	// A Foo that was registered before goes on while its new generation is registered.
	world.Waits = !done && registered == 0
	world.Verdicts = append(world.Verdicts, plan.Registration(foo, done, cmp.Or(unwritten, refused)))
	return unwritten
}

// recheck reads a Foo live, and returns nil if it still specifies what the cached Foo does.
func (c *Controller) recheck(ctx context.Context, foo plan.Owner) error {
	return (&ownerSync{c, cache.MetaObjectToName(foo), foo, &memory.Owner{}}).recheckOwner(ctx)
}

// setFinalizer adds the finalizer to a Foo, or removes it. It never returns nil, because
// the next sync must see what was written.
func (s *ownerSync) setFinalizer(ctx context.Context, hold bool) error {
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	client := s.fooClient.SamplecontrollerV1alpha1().Foos(s.key.Namespace)
	stored, err := external.SetFinalizer(ctx, client, s.owner.(*samplev1alpha1.Foo), samplev1alpha1.FinalizerRegistered, hold,
		metav1.PatchOptions{FieldManager: names.Controller})
	if err != nil {
		return fmt.Errorf("writing the finalizer: %w", err)
	}
	s.metrics.Wrote("patch", "foos")
	s.memory.Written.Observe(stored, s.clock.Now())
	return failure.ErrStale
}
