// SPDX-License-Identifier: Apache-2.0

// Rows D1 to D4: rival writers, outages, and calls that hang. Rows A4 and A6: a
// controller that is stopped or frozen.

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"

	"example.com/sample-controller/test/faults/proxy"
)

func isCreate(call proxy.Call) bool {
	return call.Method == http.MethodPost && call.Resource == "deployments" && call.Succeeded()
}

func isUpdate(call proxy.Call) bool { return isUpdateAttempt(&call) && call.Succeeded() }

// isUpdateAttempt reports whether a request changes a Deployment: this controller sends a
// patch, and upstream's the whole object.
func isUpdateAttempt(call *proxy.Call) bool {
	return (call.Method == http.MethodPatch || call.Method == http.MethodPut) && call.Resource == "deployments"
}

// rivalWriters are D1: another client writes to the same Deployment.
func rivalWriters(writeCounts) []trialCase {
	return []trialCase{
		{"while the write is under way", duringUpdate(func(ctx context.Context, tr *trial) error { return tr.annotate(ctx, "a", "mine") })},
		{"takes the owner away while the write is under way", duringUpdate(takeAway)},
		{"unseen by the cache", func(ctx context.Context, tr *trial) error {
			r, err := tr.startExempt()
			if err != nil {
				return err
			}
			if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
				return err
			}
			release := r.proxy.HoldEvents("deployments")
			defer release()
			if err := errors.Join(tr.annotate(ctx, "a", "mine"), tr.scaleFoo(ctx, "a", 3)); err != nil {
				return err
			}
			err = tr.awaitCall(ctx, r, func(call proxy.Call) bool {
				return isUpdateAttempt(&call) && call.Code != 0
			})
			release()
			return errors.Join(err, tr.stableAndQuiet(ctx))
		}},
		{"a storm", func(ctx context.Context, tr *trial) error {
			if _, err := tr.startExempt(); err != nil {
				return err
			}
			if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
				return err
			}
			var errs []error
			for i := range 100 {
				errs = append(errs, tr.patchDeployment(ctx, "a", fmt.Sprintf(`{"metadata":{"annotations":{"storm":"%d"}}}`, i)))
				if i%20 == 10 {
					errs = append(errs, tr.scaleFoo(ctx, "a", int32(i/20+1)))
				}
			}
			tr.protectAnnotation("a", "storm", "99")
			return errors.Join(errors.Join(errs...), tr.stableAndQuiet(ctx))
		}},
	}
}

// duringUpdate acts while a write to Foo a's Deployment is under way.
func duringUpdate(act func(context.Context, *trial) error) func(context.Context, *trial) error {
	return func(ctx context.Context, tr *trial) error {
		r, err := tr.startExempt()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
			return err
		}
		var once sync.Once
		acted := make(chan error, 1)
		defer r.proxy.Use(func(call *proxy.Call) proxy.Fault {
			if isUpdateAttempt(call) {
				once.Do(func() { acted <- act(ctx, tr) })
			}
			return nil
		})()
		if err := tr.scaleFoo(ctx, "a", 3); err != nil {
			return err
		}
		select {
		case err = <-acted:
		case <-ctx.Done():
			err = ctx.Err()
		}
		return errors.Join(err, tr.stableAndQuiet(ctx))
	}
}

// outages are D2 and D3: for a while, no request succeeds.
func outages(writeCounts) []trialCase {
	var cases []trialCase
	for name, fault := range map[string]proxy.Fault{
		"429 to all": proxy.TooMany, "500 to all": proxy.Internal, "503 to all": proxy.Unavailable, "401 to all": proxy.Unauthorized,
	} {
		cases = append(cases, outage(name, func(r *replica) func() {
			end := r.proxy.Use(func(*proxy.Call) proxy.Fault { return fault })
			r.proxy.EndWatches("")
			return end
		}))
	}
	return append(cases, outage("connections cut", func(r *replica) func() { return r.proxy.Down() }))
}

func outage(name string, begin func(*replica) (end func())) trialCase {
	return trialCase{name, func(ctx context.Context, tr *trial) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.createFoo(ctx, "b", "b", 1), tr.settled(ctx)); err != nil {
			return err
		}
		end := begin(r)
		err = errors.Join(tr.scaleFoo(ctx, "a", 3), tr.patchDeployment(ctx, "b", `{"spec":{"replicas":4}}`), tr.createFoo(ctx, "c", "c", 1))
		pause(ctx, 3*quiet)
		if r.process.hasEnded() {
			return errors.New("the process has ended")
		}
		end()
		return errors.Join(err, tr.stableAndQuiet(ctx))
	}}
}

// hangingCalls are D4: calls that are never answered do not delay other Foos.
func hangingCalls(writeCounts) []trialCase {
	hang := func(name string, fault proxy.Fault) trialCase {
		return trialCase{name, func(ctx context.Context, tr *trial) error {
			r, err := tr.start(tr.shortCallTimeout()...)
			if err != nil {
				return err
			}
			end := r.proxy.Use(func(call *proxy.Call) proxy.Fault {
				if call.Method == http.MethodPost && call.Resource == "deployments" && bytes.Contains(call.Body, []byte("stuck-")) {
					return fault
				}
				return nil
			})
			for _, foo := range []string{"stuck-1", "stuck-2"} {
				if err := tr.createFoo(ctx, foo, foo, 1); err != nil {
					return err
				}
			}
			if err := tr.awaitCall(ctx, r, func(call proxy.Call) bool { return call.Fault != "" }); err != nil {
				return err
			}
			if err := errors.Join(tr.createFoo(ctx, "free", "free", 1), tr.awaitDeployment(ctx, "free")); err != nil {
				return fmt.Errorf("two calls hang, and a third Foo is delayed: %w", err)
			}
			end()
			return tr.stableAndQuiet(ctx)
		}}
	}
	return []trialCase{hang("not done", proxy.Hang), hang("done", proxy.HangDone)}
}

// shortCallTimeout is the flag for a short timeout of each call, if the subject has it.
func (tr *trial) shortCallTimeout() []string {
	if tr.subject == run.upstream {
		return nil
	}
	return []string{"-request-timeout=2s"}
}

// frozen is A6: the process is frozen while objects change.
func frozen(writeCounts) []trialCase {
	return []trialCase{{"for a while", func(ctx context.Context, tr *trial) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "one", 1), tr.createFoo(ctx, "b", "b", 1), tr.settled(ctx)); err != nil {
			return err
		}
		r.process.signal(syscall.SIGSTOP)
		err = errors.Join(tr.scaleFoo(ctx, "a", 3), tr.deployments().Delete(ctx, "b", deleteNow()), tr.createFoo(ctx, "c", "c", 2))
		pause(ctx, quiet)
		r.process.signal(syscall.SIGCONT)
		return errors.Join(err, tr.stableAndQuiet(ctx))
	}}}
}

// stopped is A4: the controller is asked to stop during a write, once or twice.
func stopped(writeCounts) []trialCase {
	return []trialCase{
		heldUp("a create under way", func(ctx context.Context, r *replica, open func()) error {
			r.process.signal(syscall.SIGTERM)
			pause(ctx, quiet/3)
			open()
			if code := r.process.exitCode(); code != 0 {
				return fmt.Errorf("after SIGTERM it exited with code %d", code)
			}
			if !slices.ContainsFunc(r.proxy.Calls(), isCreate) {
				return errors.New("after SIGTERM it dropped the write that was under way")
			}
			return nil
		}),
		heldUp("a second signal", func(ctx context.Context, r *replica, _ func()) error {
			r.process.signal(syscall.SIGINT)
			pause(ctx, quiet/3)
			r.process.signal(syscall.SIGINT)
			if code := r.process.exitCode(); code != 1 {
				return fmt.Errorf("after the second SIGINT it exited with code %d", code)
			}
			return nil
		}),
	}
}

// heldUp is a case in which a controller ends while its first create of a Deployment is
// held, until open is called or the controller has ended. Then it is started again.
func heldUp(name string, end func(ctx context.Context, r *replica, open func()) error) trialCase {
	return trialCase{name, func(ctx context.Context, tr *trial) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		release := make(chan struct{})
		open := sync.OnceFunc(func() { close(release) })
		defer open()
		r.proxy.Use(once(func(call *proxy.Call) proxy.Fault {
			if call.Method == http.MethodPost && call.Resource == "deployments" {
				return proxy.Hold(release)
			}
			return nil
		}))
		held := func(call proxy.Call) bool { return call.Fault != "" }
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.awaitCall(ctx, r, held)); err != nil {
			return err
		}
		if err := end(ctx, r, open); err != nil {
			return err
		}
		open()
		return errors.Join(r.process.start(), tr.stableAndQuiet(ctx))
	}}
}
