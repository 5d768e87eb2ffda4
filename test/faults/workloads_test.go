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
	for _, w := range workloads() {
		all = append(all, &scenario{row: w.row, title: "no fault: " + w.title, workload: w, oursOnly: w.oursOnly, why: w.why})
	}
	for _, letter := range [][]scenario{rowsA, rowsB, rowsC, rowsD, rowsD9, rowsE, rowsF, rowsG, rowsG7, rowsAtRest} {
		for _, sc := range letter {
			all = append(all, &sc)
		}
	}
	for _, sc := range all {
		sc.results = map[*subject]result{}
	}
	return all
}

// workload is something that a user does and that makes a controller write.
type workload struct {
	name string
	// row and title are shown in the matrix.
	row, title string
	arrange    func(tr *trial)
	act        func(tr *trial)
	// oursOnly says why the workload can be run with our controller only.
	oursOnly string
	// why explains why upstream's controller fails the workload.
	why string
}

func workloads() []*workload {
	return []*workload{{
		name: "recreate", row: "B3", title: "a Foo is deleted and created again",
		arrange: func(tr *trial) { tr.createFoo("a", "a", 1) },
		act: func(tr *trial) {
			tr.deleteFoo("a", metav1.DeletePropagationBackground)
			tr.createFoo("a", "a", 2)
		},
	}, {
		name: "rename", row: "C1", title: "a Foo asks for a Deployment of another name",
		why:     "it reads only the Deployment of the current name",
		arrange: func(tr *trial) { tr.createFoo("a", "one", 1) },
		act:     func(tr *trial) { tr.renameDeployment("a", "two") },
	}, {
		name: "adopt", row: "C5", title: "a Deployment is handed over to a Foo", oursOnly: noAdoption,
		arrange: func(tr *trial) {
			tr.createDeployment("orphan")
			tr.createFoo("a", "orphan", 2)
		},
		act: func(tr *trial) {
			tr.patchDeployment("orphan", `{"metadata":{"annotations":{"samplecontroller.k8s.io/adopt-by":"a"}}}`)
		},
	}, {
		name: "takeover", row: "C7", title: "two Foos ask for one Deployment, and the first is deleted",
		arrange: func(tr *trial) {
			tr.settledFoo("first", "shared", 1)
			tr.createFoo("second", "shared", 2)
		},
		act: func(tr *trial) { tr.deleteFoo("first", metav1.DeletePropagationBackground) },
	}, {
		name: "deleted", row: "C8", title: "somebody deletes the Deployment",
		arrange: func(tr *trial) { tr.createFoo("a", "a", 2) },
		act:     func(tr *trial) { tr.deleteDeployment("a") },
	}, {
		name: "drift", row: "C14", title: "somebody scales the Deployment",
		arrange: func(tr *trial) { tr.createFoo("a", "a", 2) },
		act:     func(tr *trial) { tr.scaleDeployment("a", 5) },
	}, {
		name: "create", row: "C15", title: "a Foo is created",
		arrange: func(*trial) {},
		act:     func(tr *trial) { tr.createFoo("a", "a", 2) },
	}, {
		name: "scale", row: "C15", title: "a Foo is scaled",
		arrange: func(tr *trial) { tr.createFoo("a", "a", 1) },
		act:     func(tr *trial) { tr.scaleFoo("a", 3) },
	}}
}

// prepare starts a controller, and makes it ready for the act.
func (w *workload) prepare(tr *trial) *replica {
	r := tr.start()
	w.arrange(tr)
	tr.settled()
	return r
}

// run runs a workload without a fault and returns the number of its writes.
func (w *workload) run(tr *trial) (writes int) {
	r, began := w.prepare(tr), time.Now()
	w.act(tr)
	tr.stableAndQuiet()
	return len(r.made(since(began), isWork))
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
	for _, w := range workloads() {
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
	for _, w := range workloads() {
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
