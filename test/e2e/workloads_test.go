// SPDX-License-Identifier: Apache-2.0

// The workloads: what a user does and what makes a controller write, and the row at rest. They are run without a
// fault, then with a fault of each write, and under conditions that last. And the requests of a
// controller: which of them break, and which a row counts or waits for.

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
)

// manyWrites is more than any workload makes.
const manyWrites = 9

// Reasons why a row can be run with our controller only.
const (
	noElection   = "no leader election"
	noAdoption   = "no adoption"
	noConditions = "no conditions"
	noImage      = "no image flag"
	noCleanup    = "never deletes former Deployments"
)

// allRows are the rows of the matrix, in the order of docs/faults.md.
func allRows() []*scenario {
	return slices.Concat(rowsWithoutFault(), rowsA, rowsB, rowsC, rowsD, rowsE, rowsF, rowsG, rowsG7, rowsOthers, rowsAtRest)
}

// workload is something that a user does and that makes a controller write.
type workload struct {
	// row and title are those of the workload without a fault.
	row, title    string
	name          string
	arrange, act  func(tr *trial)
	oursOnly, why string
}

var workloads = []*workload{
	{
		row: "B3", name: "recreate", title: "a Foo is deleted and recreated",
		arrange: func(tr *trial) { tr.createFoo("a", "a", 1) },
		act: func(tr *trial) {
			tr.deleteFoo("a", metav1.DeletePropagationBackground)
			tr.createFoo("a", "a", 2)
		},
	}, {
		row: "C1", name: "rename", title: "deploymentName changes",
		arrange: func(tr *trial) { tr.createFoo("a", "one", 1) },
		act:     func(tr *trial) { tr.renameDeployment("a", "two") },
		why:     "it reads only the Deployment of the current name",
	}, {
		row: "C5", name: "adopt", title: "a Deployment is handed over to a Foo", oursOnly: noAdoption,
		arrange: func(tr *trial) {
			tr.createDeployment("orphan")
			tr.createFoo("a", "orphan", 2)
		},
		act: func(tr *trial) {
			tr.patchDeployment("orphan", `{"metadata":{"annotations":{"samplecontroller.k8s.io/adopt-by":"a"}}}`)
		},
	}, {
		row: "C7", name: "takeover", title: "two Foos name one Deployment, and the first is deleted",
		arrange: func(tr *trial) {
			tr.settledFoo("first", "shared", 1)
			tr.createFoo("second", "shared", 2)
		},
		act: func(tr *trial) { tr.deleteFoo("first", metav1.DeletePropagationBackground) },
	}, {
		row: "C8", name: "deleted", title: "a user deletes the Deployment",
		arrange: func(tr *trial) { tr.createFoo("a", "a", 2) },
		act:     func(tr *trial) { tr.deleteDeployment("a") },
	}, {
		row: "C14", name: "drift", title: "a user scales the Deployment",
		arrange: func(tr *trial) { tr.createFoo("a", "a", 2) },
		act:     func(tr *trial) { tr.scaleDeployment("a", 5) },
	}, {
		row: "C15", name: "create", title: "a Foo is created",
		arrange: func(*trial) {},
		act:     func(tr *trial) { tr.createFoo("a", "a", 2) },
	}, {
		row: "C15", name: "scale", title: "a Foo is scaled",
		arrange: func(tr *trial) { tr.createFoo("a", "a", 1) },
		act:     func(tr *trial) { tr.scaleFoo("a", 3) },
	},
}

// rowsWithoutFault are the workloads. A workload that fails is known to make no writes.
func rowsWithoutFault() []*scenario {
	var rows []*scenario
	for _, w := range workloads {
		rows = append(rows, &scenario{
			row: w.row, title: "no fault: " + w.title, quick: 1, isWorkload: true, oursOnly: w.oursOnly, why: w.why,
			cases: one(w.name, func(tr *trial) {
				tr.subject.setWrites(w.name, 0)
				r, began := w.prepare(tr), time.Now()
				w.act(tr)
				tr.stableAndQuiet()
				tr.subject.setWrites(w.name, len(r.made(since(began), isWork)))
			}),
		})
	}
	return rows
}

// prepare starts a controller, and makes it ready for the act.
func (w *workload) prepare(tr *trial) *replica {
	r := tr.start()
	w.arrange(tr)
	tr.stableAndQuiet()
	return r
}

var rowsAtRest = []*scenario{{row: "rest", title: "at rest, nothing is written, not even at a resync",
	quick: 1, cases: one("some resyncs", checkAtRest),
	why: "each resync, every 30 s, writes a status and an Event for each Foo"}}

// checkAtRest is the row "rest". It also checks that a transition had one Event, and a restart.
func checkAtRest(tr *trial) {
	flags, howLong := tr.resyncFlags()
	r := tr.start(flags...)
	tr.createFoo("a", "a", 1)
	tr.settledFoo("b", "b", 1)
	began := time.Now()
	tr.pause(howLong)
	if writes := tr.made(since(began), isWrite); len(writes) > 0 {
		tr.failf("it writes at rest: %d requests for two Foos in %v", len(writes), howLong)
	}
	// A transition has one Event. Some Deployments are ready as soon as they are there.
	for _, foo := range []string{"a", "b"} {
		told := r.made(isEvent, succeeded, isAvailableEvent(foo))
		if len(told) != 1 && !tr.subject.isUpstream {
			tr.failf("it reported %d times that Foo %s is available", len(told), foo)
		}
	}
	before := tr.versions()
	r.crash()
	tr.letAct()
	tr.stop(r) // which waits for the syncs in progress, so that no write follows
	if after := tr.versions(); after != before && !tr.subject.isUpstream {
		tr.failf("it writes after a restart: there were %s, and there are %s", before, after)
	}
	tr.must(r.start())
}

// isAvailableEvent selects Events that say that a Foo has become available.
func isAvailableEvent(foo string) selector {
	return func(call *proxy.Call) bool {
		return bytes.Contains(call.Answer, []byte(`"name":"`+foo+`"`)) &&
			bytes.Contains(call.Answer, []byte(`"reason":"`+samplev1alpha1.ReasonAvailable+`"`))
	}
}

// versions returns the versions of the Foos a and b, and of their Deployments once these have settled.
func (tr *trial) versions() string {
	var versions []string
	for _, name := range []string{"a", "b"} {
		versions = append(versions, tr.foo(name).ResourceVersion, tr.awaitSettled(name))
	}
	return strings.Join(versions, ", ")
}

// breakage is a fault of one write. recovered is closed when the controller has recovered.
type breakage struct {
	name  string
	fault func(r *replica, recovered <-chan struct{}) proxy.Fault
}

// always is the same fault for each trial.
func always(name string, fault proxy.Fault) breakage {
	return breakage{name, func(*replica, <-chan struct{}) proxy.Fault { return fault }}
}

// eachWrite makes a case of each write of each workload with each breakage.
func eachWrite(breakages ...breakage) []trialCase {
	var cases []trialCase
	for _, w := range workloads {
		for write := 1; write <= manyWrites; write++ {
			for _, b := range breakages {
				cases = append(cases, trialCase{
					name:  fmt.Sprintf("%s, write %d, %s", w.name, write, b.name),
					needs: w.name, write: write, run: func(tr *trial) {
						r, began, recovered := w.prepare(tr), time.Now(), make(chan struct{})
						r.proxy.Use(nth(write, isWork), b.fault(r, recovered))
						w.act(tr)
						tr.stableAndQuiet()
						if len(r.made(since(began), isWork)) < write {
							tr.must(errNotReached)
						}
						close(recovered)
					},
				})
			}
		}
	}
	return cases
}

// eachWorkload makes a case of each workload.
func eachWorkload(run func(tr *trial, w *workload)) []trialCase {
	var cases []trialCase
	for _, w := range workloads {
		cases = append(cases, trialCase{name: w.name, run: func(tr *trial) { run(tr, w) }, needs: w.name})
	}
	return cases
}

// throughout makes a case of each workload, under a condition that lasts from the start.
func throughout(begin func(*replica)) []trialCase {
	return eachWorkload(func(tr *trial, w *workload) {
		r := tr.start()
		begin(r)
		r.crash()
		w.arrange(tr)
		tr.stableAndQuiet()
		w.act(tr)
	})
}

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
	isWrite                    = both((*proxy.Call).IsWrite, isNotFence)
	isWork                     = both((*proxy.Call).IsWork, isNotFence)
	succeeded         selector = (*proxy.Call).Succeeded
)

// isNotFence leaves out what is about the Foo of handleAll.
func isNotFence(call *proxy.Call) bool {
	return call.Name != fence && (call.Resource != "events" || !bytes.Contains(call.Body, []byte(fence)))
}

func isAnswered(call *proxy.Call) bool { return call.Code != 0 }
func isEvent(call *proxy.Call) bool    { return call.Resource == "events" }
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
	var found []*proxy.Call
	tr.await(fmt.Sprintf("there are %d requests", times), func(context.Context) error {
		if found = r.made(selectors...); len(found) < times {
			return fmt.Errorf("there are %d", len(found))
		}
		return nil
	})
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

// mustNotWrite fails if a controller writes a Foo or a Deployment, or tries to, while wait waits.
func (tr *trial) mustNotWrite(wait func()) {
	began := time.Now()
	wait()
	for _, call := range tr.made(since(began), isWork) {
		tr.failf("it wrote when it must not: %s", call.Short())
	}
}
