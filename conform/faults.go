// SPDX-License-Identifier: Apache-2.0

// The faults: each wraps what happens in a step.

package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/conform/judge"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/testcluster"
)

const (
	// outage is how long faults last that last for a while.
	outage = 6 * time.Second
	// lag is how long a cache lacks events that are lost, and a list that is slow.
	lag = 3 * time.Second
	// stepWait bounds how long a fault waits for the write that it is about, unless a run without a
	// fault needs longer to come to rest.
	stepWait = 20 * time.Second
)

// injection does a step with a fault. It returns when the fault is over.
type injection func(tr *trial, act func() error) error

func injections() map[string]injection {
	all := map[string]injection{
		"none": plain, "rest": plain, "relist": plain, "restart": plain, "two-at-once": plain,
		judge.Touching: plain,
		"kill-before": once(func(tr *trial) proxy.Fault {
			return func(x *proxy.Exchange) {
				tr.replicas[0].kill(false)
				proxy.Cut(x)
			}
		}),
		"kill-after": once(func(tr *trial) proxy.Fault {
			return proxy.Done(func(x *proxy.Exchange) {
				tr.replicas[0].kill(false)
				proxy.Cut(x)
			})
		}),
		"lost-answer": once(func(*trial) proxy.Fault { return proxy.Done(proxy.Cut) }),
		"late":        late,
		"hang":        once(hang),
		"term":        term,
		"down":        down, "frozen": frozen,
		"gone": gone, "dead-connections": deadConnections, "stale": stale, "lost-events": lostEvents,
		"slow-start":      slowStart,
		"repeated-events": edited(func(_ context.Context, e proxy.Event) [][]byte { return e.Times(2) }),
		"no-watch-list":   during(isInitialStream, proxy.Refuse(http.StatusUnprocessableEntity)),
		"away":            forAWhile(isAny, proxy.Cut), "revoked": revoked, "quota": quota,
		"leader-killed": leaderKilled, "leader-frozen": leaderFrozen, "leader-robbed": leaderRobbed,
		"apiserver-restarts": restarting(testcluster.APIServer), "etcd-restarts": restarting(testcluster.Etcd),
		"etcd-frozen": etcdFrozen, "plane-away": restarting(testcluster.Etcd, testcluster.APIServer), "restored": restored,
	}
	for _, code := range []int{401, 403, 409, 422, 429, 500} {
		all[fmt.Sprint(code)] = once(func(*trial) proxy.Fault { return proxy.Refuse(code) })
	}
	for _, code := range []int{401, 429, 500} {
		all[fmt.Sprintf("all-%d", code)] = forAWhile(isAny, proxy.Refuse(code))
	}
	return all
}

func isAny(*proxy.Call) bool { return true }

// isInitialStream selects watches that begin with the objects that exist, and isResumed those
// that continue.
func isInitialStream(call *proxy.Call) bool { return call.IsWatch() && call.SendsInitial }
func isResumed(call *proxy.Call) bool       { return call.IsWatch() && !call.SendsInitial }

func plain(_ *trial, act func() error) error { return act() }

// aim injects a fault into the write of the case, once. Reached is closed when it begins.
func (tr *trial) aim(fault proxy.Fault) (reached <-chan struct{}, remove func()) {
	began, w := make(chan struct{}), tr.run.Case.Write
	var mu sync.Mutex
	seen := 0
	remove = tr.replicas[0].proxy.Use(func(call *proxy.Call) bool {
		if !judge.IsWork(call) || call.Method != w.Method || judge.PathOf(call) != w.Resource {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		seen++
		if seen == w.Nth {
			close(began)
		}
		return seen == w.Nth
	}, fault)
	return began, remove
}

// await waits for the write of the case, and notes whether it came: not, if the step has come
// to its end without it.
func (tr *trial) await(reached <-chan struct{}) {
	over := func(context.Context) (bool, error) {
		select {
		case <-reached:
			tr.run.Reached = true
		default:
		}
		return tr.run.Reached || tr.isSettled(tr.run.Case.Step, longQuiet), nil
	}
	limit := max(stepWait, tr.settings.Settle.Duration)
	_ = wait.PollUntilContextTimeout(tr.ctx, pollPeriod, limit, true, over) // or it did not come
}

// once injects a fault into one write.
func once(fault func(*trial) proxy.Fault) injection {
	return func(tr *trial, act func() error) error {
		reached, remove := tr.aim(fault(tr))
		defer remove()
		if err := act(); err != nil {
			return err
		}
		tr.await(reached)
		return nil
	}
}

// hang keeps a request for a while, as a network does that loses it.
func hang(tr *trial) proxy.Fault {
	ctx, cancel := context.WithTimeout(tr.ctx, 2*outage)
	return func(x *proxy.Exchange) {
		defer cancel()
		proxy.Hold(ctx.Done(), proxy.Cut)(x)
	}
}

// late cuts a write off, which arrives when it has been repeated, or after a while.
func late(tr *trial, act func() error) error {
	arrive := make(chan struct{})
	defer close(arrive)
	reached, remove := tr.aim(proxy.CutAndLater(arrive))
	defer remove()
	if err := act(); err != nil {
		return err
	}
	tr.await(reached)
	isRepeated := func(context.Context) (bool, error) {
		w := tr.run.Case.Write
		answered := 0
		for _, call := range tr.calls() {
			if judge.IsWork(call) && call.Method == w.Method && judge.PathOf(call) == w.Resource && call.Code != 0 && call.Began.After(tr.run.Steps[w.Step].Began) {
				answered++
			}
		}
		return answered >= w.Nth, nil
	}
	_ = wait.PollUntilContextTimeout(tr.ctx, pollPeriod, outage, true, isRepeated) // or it arrives without
	return nil
}

// term stops the process during a write, as a rollout does.
func term(tr *trial, act func() error) error {
	forward := make(chan struct{})
	reached, remove := tr.aim(proxy.Hold(forward, proxy.Forward))
	defer remove()
	if err := act(); err != nil {
		return err
	}
	if tr.await(reached); !tr.run.Reached {
		return nil
	}
	process := tr.replicas[0].signal(syscall.SIGTERM, false)
	err := tr.pause(lag / 3)
	close(forward)
	if !process.Wait(termGrace) {
		tr.run.Exits = append(tr.run.Exits, judge.Exit{At: time.Now(), How: fmt.Sprintf("it did not end within %v of SIGTERM", termGrace)})
		tr.replicas[0].kill(false)
	}
	return err
}

// down does the step while the program does not run.
func down(tr *trial, act func() error) error {
	tr.replicas[0].kill(true)
	if err := act(); err != nil {
		return err
	}
	return tr.replicas[0].start()
}

// frozen does the step while the program is stopped.
func frozen(tr *trial, act func() error) error {
	tr.replicas[0].signal(syscall.SIGSTOP, false)
	defer tr.replicas[0].signal(syscall.SIGCONT, false)
	if err := act(); err != nil {
		return err
	}
	return tr.pause(outage)
}

// during has a fault for as long as the step lasts.
func during(is func(*proxy.Call) bool, fault proxy.Fault) injection {
	return func(tr *trial, act func() error) error {
		defer tr.replicas[0].proxy.Use(is, fault)()
		tr.replicas[0].proxy.EndWatches("")
		return act()
	}
}

// forAWhile has a fault for some time from the step on.
func forAWhile(is func(*proxy.Call) bool, fault proxy.Fault) injection {
	return during2(is, fault, func(tr *trial, act func() error) error {
		if err := act(); err != nil {
			return err
		}
		return tr.pause(outage)
	})
}

func during2(is func(*proxy.Call) bool, fault proxy.Fault, body injection) injection {
	return func(tr *trial, act func() error) error {
		return during(is, fault)(tr, func() error { return body(tr, act) })
	}
}

// revoked takes a permission away for a while.
func revoked(tr *trial, act func() error) error {
	c := tr.run.Case
	is := func(call *proxy.Call) bool {
		return call.IsResourceRequest && call.Verb == c.Verb && judge.PathOf(call) == c.Resource
	}
	return forAWhile(is, proxy.Refuse(http.StatusForbidden))(tr, act)
}

func edited(edit func(context.Context, proxy.Event) [][]byte) injection {
	return func(tr *trial, act func() error) error {
		tr.replicas[0].proxy.EditEvents(edit)
		defer tr.replicas[0].proxy.EditEvents(nil)
		return act()
	}
}

// isAbout reports whether a resource is that of the case.
func (tr *trial) isAbout(resource, group string) bool {
	return judge.ResourceName(resource, group) == tr.run.Case.Resource
}

// stale holds the events of a resource back while the step happens. The applied objects change
// twice, so that they are reconciled with a cache that is behind.
func stale(tr *trial, act func() error) error {
	release := tr.replicas[0].proxy.HoldEvents(tr.plural())
	defer release()
	if err := act(); err != nil {
		return err
	}
	return tr.touchTwice()
}

// touchTwice touches the applied objects twice in the time for which caches are behind.
func (tr *trial) touchTwice() error {
	part := tr.settings.Lag.Duration / 3
	for range 2 {
		if err := tr.pause(part); err != nil {
			return err
		}
		if err := tr.touch(); err != nil {
			return err
		}
	}
	return tr.pause(part)
}

// plural returns the name of the case's resource without the group.
func (tr *trial) plural() string {
	for _, known := range tr.recorder.resources {
		if tr.isAbout(known.Name, known.Group) {
			return known.Name
		}
	}
	return tr.run.Case.Resource
}

// lostEvents drops the events of a resource while the step happens. Then its watches end with
// 410, so that the client lists again.
func lostEvents(tr *trial, act func() error) error {
	p, plural := tr.replicas[0].proxy, tr.plural()
	p.EditEvents(func(_ context.Context, e proxy.Event) [][]byte {
		if e.Resource == plural && e.Type != "BOOKMARK" {
			return nil
		}
		return e.Times(1)
	})
	if err := act(); err != nil {
		return err
	}
	if err := tr.pause(lag); err != nil {
		return err
	}
	p.EditEvents(nil)
	isIts := func(call *proxy.Call) bool { return isResumed(call) && call.Resource == plural }
	remove := p.Use(isIts, proxy.Refuse(http.StatusGone))
	defer remove()
	p.EndWatches(plural)
	return tr.pause(lag)
}

// gone makes the version too old from which each watch continues.
func gone(tr *trial, act func() error) error {
	return during2(isResumed, proxy.Refuse(http.StatusGone), func(tr *trial, act func() error) error {
		if err := act(); err != nil {
			return err
		}
		return tr.pause(lag)
	})(tr, act)
}

func deadConnections(tr *trial, act func() error) error {
	tr.replicas[0].proxy.Silence()
	return act()
}

// slowStart restarts the program in a world that is complete, and delays the lists of a
// resource: nothing must follow from what is not known yet.
func slowStart(tr *trial, act func() error) error {
	if err := act(); err != nil {
		return err
	}
	if err := tr.settle(tr.run.Case.Step, shortQuiet); err != nil {
		return err
	}
	p := tr.replicas[0]
	p.kill(true)
	is := func(call *proxy.Call) bool {
		return tr.isAbout(call.Resource, call.APIGroup) && (call.Verb == "list" || isInitialStream(call))
	}
	remove := p.proxy.Use(is, proxy.Refuse(http.StatusServiceUnavailable))
	defer remove()
	if err := p.start(); err != nil {
		return err
	}
	from := time.Now()
	err := tr.pause(lag)
	tr.run.Silent = append(tr.run.Silent, judge.Window{From: from, To: time.Now(), Why: "without a list of " + tr.run.Case.Resource})
	return err
}
