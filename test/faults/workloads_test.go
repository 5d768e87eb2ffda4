// SPDX-License-Identifier: Apache-2.0

// The workloads: what a user does and what makes a controller write. They are run without a
// fault, then with a fault of each write, and under conditions that last.

package faults

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/faults/proxy"
)

// manyWrites is more than any workload makes.
const manyWrites = 9

// Reasons why a row can be run with our controller only.
const (
	noElection   = "has no leader election"
	noAdoption   = "has no adoption"
	noConditions = "has no conditions"
	noImage      = "has no flag for the image"
	noCleanup    = "deletes no Deployments of former names"
)

// rows are the rows of the matrix, in the order of docs/faults.md.
func rows() []*scenario {
	var all []*scenario
	for _, letter := range [][]scenario{
		rowsWithoutFault(), rowsA, rowsB, rowsC, rowsD, rowsD9, rowsE, rowsF, rowsG, rowsG7, rowsAtRest,
	} {
		for _, sc := range letter {
			sc.results = map[*subject]result{}
			all = append(all, &sc)
		}
	}
	return all
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
		row: "B3", name: "recreate", title: "a Foo is deleted and created again",
		arrange: func(tr *trial) { tr.createFoo("a", "a", 1) },
		act: func(tr *trial) {
			tr.deleteFoo("a", metav1.DeletePropagationBackground)
			tr.createFoo("a", "a", 2)
		},
	}, {
		row: "C1", name: "rename", title: "a Foo asks for a Deployment of another name",
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
		row: "C7", name: "takeover", title: "two Foos ask for one Deployment, and the first is deleted",
		arrange: func(tr *trial) {
			tr.settledFoo("first", "shared", 1)
			tr.createFoo("second", "shared", 2)
		},
		act: func(tr *trial) { tr.deleteFoo("first", metav1.DeletePropagationBackground) },
	}, {
		row: "C8", name: "deleted", title: "somebody deletes the Deployment",
		arrange: func(tr *trial) { tr.createFoo("a", "a", 2) },
		act:     func(tr *trial) { tr.deleteDeployment("a") },
	}, {
		row: "C14", name: "drift", title: "somebody scales the Deployment",
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
func rowsWithoutFault() []scenario {
	var rows []scenario
	for _, w := range workloads {
		rows = append(rows, scenario{
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
	tr.settled()
	return r
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
		tr.settled()
		w.act(tr)
	})
}
