// SPDX-License-Identifier: Apache-2.0

// The requests of a controller: which of them break, and which a row counts or waits for.

package faults

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/sample-controller/test/faults/proxy"
)

// selector says which requests are meant.
type selector func(*proxy.Call) bool

func all(*proxy.Call) bool { return true }

// attempted selects requests by their resource and verb.
func attempted(resource string, verbs ...string) selector {
	return func(call *proxy.Call) bool { return call.Resource == resource && slices.Contains(verbs, call.Verb) }
}

// The first selectors are of requests, successful or not. This controller updates a Deployment
// with a patch, and upstream's with the whole object.
var (
	isCreate                   = attempted("deployments", "create")
	isUpdate                   = attempted("deployments", "update", "patch")
	isDelete                   = attempted("deployments", "delete")
	isDeploymentWrite          = attempted("deployments", "create", "update", "patch", "delete", "deletecollection")
	isWrite           selector = (*proxy.Call).IsWrite
	isWork            selector = (*proxy.Call).IsWork
	succeeded         selector = (*proxy.Call).Succeeded
)

func isAnswered(call *proxy.Call) bool { return call.Code != 0 }
func hasFault(call *proxy.Call) bool   { return call.Fault != "" }

// isInitialStream selects watches that begin with the objects that exist.
func isInitialStream(call *proxy.Call) bool { return call.IsWatch() && call.SendsInitial }

// inNamespace selects requests for a namespace.
func inNamespace(ns string) selector {
	return func(call *proxy.Call) bool { return call.Namespace == ns }
}

// isWarning selects Events of the type Warning.
func isWarning(call *proxy.Call) bool {
	return call.IsWrite() && call.Resource == "events" &&
		bytes.Contains(call.Answer, []byte(`"type":"`+corev1.EventTypeWarning+`"`))
}

// isAbout selects writes to a Foo, or to the Deployment of its name.
func isAbout(foo string) selector {
	return func(call *proxy.Call) bool {
		return call.IsWork() && (call.Name == foo || call.Name == "" && bytes.Contains(call.Body, []byte(foo)))
	}
}

// since selects requests that begin after now.
func since(began time.Time) selector {
	return func(call *proxy.Call) bool { return call.Began.After(began) }
}

// both selects what all selectors select.
func both(selectors ...selector) selector {
	return func(call *proxy.Call) bool {
		return !slices.ContainsFunc(selectors, func(is selector) bool { return !is(call) })
	}
}

// first selects a number of requests only, and nth the one with a number, counted from 1.
func first(limit int, is selector) selector {
	return numbered(is, func(number int) bool { return number <= limit })
}

func nth(number int, is selector) selector {
	return numbered(is, func(n int) bool { return n == number })
}

func numbered(is selector, right func(number int) bool) selector {
	var selected atomic.Int32
	return func(call *proxy.Call) bool { return is(call) && right(int(selected.Add(1))) }
}

// made returns the requests of a controller that all selectors select.
func (r *replica) made(selectors ...selector) []*proxy.Call {
	is := both(selectors...)
	return slices.DeleteFunc(r.proxy.Calls(), func(call *proxy.Call) bool { return !is(call) })
}

// made returns the requests of all controllers that all selectors select.
func (tr *trial) made(selectors ...selector) []*proxy.Call {
	var calls []*proxy.Call
	for _, r := range tr.replicas {
		calls = append(calls, r.made(selectors...)...)
	}
	return calls
}

// awaitCalls waits until a controller has made a number of requests that all selectors
// select, and returns the first.
func (tr *trial) awaitCalls(r *replica, times int, selectors ...selector) *proxy.Call {
	ctx, cancel := context.WithTimeoutCause(tr.ctx, tr.timeout, errTimeout)
	defer cancel()
	is := both(selectors...)
	var found []*proxy.Call
	err := r.proxy.Await(ctx, func(calls []*proxy.Call) bool {
		found = slices.DeleteFunc(calls, func(call *proxy.Call) bool { return !is(call) })
		return len(found) >= times
	})
	if err != nil {
		tr.failf("waiting for %d requests, and there are %d: %w", times, len(found), err)
	}
	return found[0]
}

func (tr *trial) awaitCall(r *replica, selectors ...selector) *proxy.Call {
	return tr.awaitCalls(r, 1, selectors...)
}

// holdNext holds the first request that is selected and that act causes. It returns when
// the request is held. When open is called, the request is left to another fault.
func (tr *trial) holdNext(r *replica, is selector, then proxy.Fault, act func()) (open func()) {
	release := make(chan struct{})
	r.proxy.Use(first(1, is), proxy.Hold(release, then))
	act()
	// Another call may have a fault, too: the watch of the Lease that a standby ends when it leads.
	tr.awaitCall(r, is, hasFault)
	return sync.OnceFunc(func() { close(release) })
}

// holdScale is holdNext for the update that makes a Foo's Deployment larger.
func (tr *trial) holdScale(r *replica, then proxy.Fault) (open func()) {
	return tr.holdNext(r, isUpdate, then, func() { tr.scaleFoo("a", 3) })
}

// mustNotWrite fails if a controller writes a Foo or a Deployment, or tries to, within a
// time.
func (tr *trial) mustNotWrite(howLong time.Duration) {
	began := time.Now()
	tr.pause(howLong)
	for _, call := range tr.made(since(began), isWork) {
		tr.failf("it must not write, and did: %s", call.Short())
	}
}

// mustRun fails if a controller has ended.
func (tr *trial) mustRun(r *replica) {
	if r.current().HasEnded() {
		tr.failf("the process has ended")
	}
}

// mustExit fails unless a controller ends by itself, in time, with an exit code.
func (tr *trial) mustExit(r *replica, when string, want int) {
	process := r.current()
	if !process.Wait(stopTime) {
		tr.failf("%s it did not exit within %v", when, stopTime)
	}
	if code := process.State().ExitCode(); code != want {
		tr.failf("%s it exited with code %d", when, code)
	}
}
