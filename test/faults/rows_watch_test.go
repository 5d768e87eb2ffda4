// SPDX-License-Identifier: Apache-2.0

// Rows A5 and B: stale caches, and watches that end, repeat or lose events.

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/faults/proxy"
)

// watched are the resources that a controller caches.
func watched() []string { return []string{"foos", "deployments"} }

// lateCaches are A5: nothing is written before the caches are full, even if the
// controller is killed while they fill.
func lateCaches(writeCounts) []trialCase {
	var cases []trialCase
	for _, resource := range watched() {
		cases = append(cases, trialCase{"the " + resource + " are late", func(ctx context.Context, tr *trial) error {
			r, err := tr.start()
			if err != nil {
				return err
			}
			if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
				return err
			}
			r.process.kill()
			if err := errors.Join(tr.scaleFoo(ctx, "a", 2), tr.createFoo(ctx, "b", "b", 1)); err != nil {
				return err
			}
			release := r.proxy.HoldEvents(resource)
			defer release()
			for range 2 {
				r.process.crash()
				if err := tr.checkNoWrites(ctx, quiet); err != nil {
					return err
				}
			}
			release()
			return tr.stableAndQuiet(ctx)
		}})
	}
	return cases
}

// staleDeployments are B1: the cache lacks the controller's own create.
func staleDeployments(writeCounts) []trialCase {
	return []trialCase{{"own create unseen", func(ctx context.Context, tr *trial) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "other", "other", 1), tr.settled(ctx)); err != nil {
			return err
		}
		release := r.proxy.HoldEvents("deployments")
		defer release()
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.awaitCall(ctx, r, isCreate)); err != nil {
			return err
		}
		if err := tr.scaleFoo(ctx, "a", 3); err != nil {
			return err
		}
		pause(ctx, quiet)
		release()
		err = tr.stableAndQuiet(ctx)
		creates := slices.DeleteFunc(r.proxy.Calls(), func(call proxy.Call) bool { return !isCreate(call) })
		if err == nil && len(creates) != 2 {
			err = fmt.Errorf("for two Foos %d Deployments were created", len(creates))
		}
		return err
	}}}
}

// awaitCall waits until a controller has made a matching request.
func (tr *trial) awaitCall(ctx context.Context, r *replica, is func(proxy.Call) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, tr.timeout, errTimeout)
	defer cancel()
	err := r.proxy.Await(ctx, func(calls []proxy.Call) bool { return slices.ContainsFunc(calls, is) })
	if err != nil {
		return fmt.Errorf("waiting for a request: %w", err)
	}
	return nil
}

// staleFoos are B2: the Foo in the cache is older than the one that has been reconciled,
// by another controller or by this one before.
func staleFoos(writeCounts) []trialCase {
	return []trialCase{{"beside one that is up to date", func(ctx context.Context, tr *trial) error {
		stale, err := tr.start()
		if err != nil {
			return err
		}
		if _, err := tr.start(); err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 2), tr.settled(ctx)); err != nil {
			return err
		}
		release := stale.proxy.HoldEvents("foos")
		defer release()
		before := len(stale.proxy.Calls())
		if err := errors.Join(tr.scaleFoo(ctx, "a", 4), tr.awaitReplicas(ctx, "a", 4), tr.annotate(ctx, "a", "seen")); err != nil {
			return err
		}
		pause(ctx, quiet)
		if slices.ContainsFunc(stale.proxy.Calls()[before:], isUpdate) {
			return errors.New("a controller that has not seen the Foo's new replicas wrote the old ones over them")
		}
		release()
		return tr.stableAndQuiet(ctx)
	}}}
}

// staleServer is B5: a controller restarts, and lists Foos from a stale API server.
func staleServer(writes writeCounts) []trialCase {
	change := func(name string, act func(context.Context, *trial) error) trialCase {
		return trialCase{name, func(ctx context.Context, tr *trial) error {
			r, err := tr.start()
			if err != nil {
				return err
			}
			if err := errors.Join(tr.createFoo(ctx, "a", "one", 1), tr.settled(ctx)); err != nil {
				return err
			}
			catchUp := make(chan struct{})
			r.proxy.ReplayTo("foos", catchUp)
			if err := errors.Join(act(ctx, tr), tr.settled(ctx)); err != nil {
				return err
			}
			before := len(r.proxy.Calls())
			r.process.crash()
			pause(ctx, 2*quiet)
			for _, call := range r.proxy.Calls()[before:] {
				if call.Succeeded() && (isUpdate(call) || call.Method == http.MethodDelete) {
					return fmt.Errorf("it acted on an older Foo: %s", call.Short())
				}
			}
			close(catchUp)
			return tr.stableAndQuiet(ctx)
		}}
	}
	cases := []trialCase{
		change("scaled since", func(ctx context.Context, tr *trial) error { return tr.scaleFoo(ctx, "a", 3) }),
	}
	if writes["rename"] > 0 {
		cases = append(cases, change("renamed since", func(ctx context.Context, tr *trial) error { return tr.renameDeployment(ctx, "a", "two") }))
	}
	return cases
}

// expiredWatches are B7: the watch ends, objects change, and a new watch from the old
// resourceVersion is refused.
func expiredWatches(writes writeCounts) []trialCase {
	var cases []trialCase
	for _, w := range passing(writes) {
		cases = append(cases, trialCase{w.name, func(ctx context.Context, tr *trial) error {
			r, err := w.prepare(ctx, tr)
			if err != nil {
				return err
			}
			again := r.proxy.Use(func(call *proxy.Call) proxy.Fault {
				if call.Watch && !strings.Contains(call.Path, "sendInitialEvents") {
					return proxy.Expired
				}
				return nil
			})
			r.proxy.EndWatches("")
			defer again()
			if err := w.act(ctx, tr); err != nil {
				return err
			}
			return tr.stableAndQuiet(ctx)
		}})
	}
	return cases
}

// missedDelete is B6: a DELETED event is lost, and a relist follows.
func missedDelete(writeCounts) []trialCase {
	return []trialCase{{"the Deployment's", func(ctx context.Context, tr *trial) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
			return err
		}
		r.proxy.EditEvents(func(e proxy.Event) int {
			if e.Type == "DELETED" {
				return 0
			}
			return 1
		})
		if err := tr.deployments().Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			return err
		}
		pause(ctx, quiet/3)
		r.proxy.EditEvents(nil)
		r.proxy.Use(once(func(call *proxy.Call) proxy.Fault {
			if call.Watch && call.Resource == "deployments" {
				return proxy.Expired
			}
			return nil
		}))
		r.proxy.EndWatches("deployments")
		return tr.stableAndQuiet(ctx)
	}}}
}

// duplicatedEvents is B9: each event is sent twice.
func duplicatedEvents(writes writeCounts) []trialCase {
	return throughout(writes, func(r *replica) { r.proxy.EditEvents(func(proxy.Event) int { return 2 }) })
}

// withoutWatchList is D8: a server that does not support sendInitialEvents.
func withoutWatchList(writes writeCounts) []trialCase {
	return throughout(writes, func(r *replica) {
		r.proxy.Use(func(call *proxy.Call) proxy.Fault {
			if strings.Contains(call.Path, "sendInitialEvents") {
				return func(x *proxy.Exchange) {
					x.Answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
						"sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled", 0)
				}
			}
			return nil
		})
	})
}

// throughout makes a case of each workload, under a condition that lasts from the start.
func throughout(writes writeCounts, begin func(*replica)) []trialCase {
	var cases []trialCase
	for _, w := range passing(writes) {
		cases = append(cases, trialCase{w.name, func(ctx context.Context, tr *trial) error {
			r, err := tr.start()
			if err != nil {
				return err
			}
			begin(r)
			r.process.crash()
			return errors.Join(w.arrange(ctx, tr), tr.settled(ctx), w.act(ctx, tr), tr.stableAndQuiet(ctx))
		}})
	}
	return cases
}

// renamedAndBack is B10: the Deployment is renamed and back before the controller sees
// it.
func renamedAndBack(writes writeCounts) []trialCase {
	if writes["rename"] == 0 {
		return nil
	}
	return []trialCase{{"unseen", func(ctx context.Context, tr *trial) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "one", 1), tr.settled(ctx)); err != nil {
			return err
		}
		release := r.proxy.HoldEvents("foos")
		defer release()
		err = errors.Join(tr.renameDeployment(ctx, "a", "two"), tr.renameDeployment(ctx, "a", "one"))
		release()
		return errors.Join(err, tr.stableAndQuiet(ctx))
	}}}
}
