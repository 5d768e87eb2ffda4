// SPDX-License-Identifier: Apache-2.0

// Workloads: what a user does, with and without a fault in one of the writes that follow.

package faults

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/faults/proxy"
)

// workload is something that a user does and that makes a controller write.
type workload struct {
	name string
	// row and title are shown in the matrix.
	row, title string
	arrange    func(ctx context.Context, tr *trial) error
	act        func(ctx context.Context, tr *trial) error
	// oursOnly says why the workload can be run with our controller only.
	oursOnly string
	// why explains why upstream's controller fails the workload.
	why string
}

// workloads are run without a fault, and then once for each write and fault.
func workloads() []workload {
	return []workload{{
		name: "create", row: "C15", title: "a Foo is created",
		arrange: func(context.Context, *trial) error { return nil },
		act:     func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "a", 2) },
	}, {
		name: "scale", row: "C15", title: "a Foo is scaled",
		arrange: func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "a", 1) },
		act:     func(ctx context.Context, tr *trial) error { return tr.scaleFoo(ctx, "a", 3) },
	}, {
		name: "rename", row: "C1", title: "a Foo asks for a Deployment of another name", why: "it reads only the Deployment of the current name",
		arrange: func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "one", 1) },
		act:     func(ctx context.Context, tr *trial) error { return tr.renameDeployment(ctx, "a", "two") },
	}, {
		name: "drift", row: "C14", title: "somebody scales the Deployment",
		arrange: func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "a", 2) },
		act: func(ctx context.Context, tr *trial) error {
			return tr.patchDeployment(ctx, "a", `{"spec":{"replicas":5}}`)
		},
	}, {
		name: "deleted", row: "C8", title: "somebody deletes the Deployment",
		arrange: func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "a", 2) },
		act: func(ctx context.Context, tr *trial) error {
			return tr.deployments().Delete(ctx, "a", deleteNow())
		},
	}, {
		name: "recreate", row: "B3", title: "a Foo is deleted and created again",
		arrange: func(ctx context.Context, tr *trial) error { return tr.createFoo(ctx, "a", "a", 1) },
		act: func(ctx context.Context, tr *trial) error {
			return errors.Join(tr.deleteFoo(ctx, "a", metav1.DeletePropagationBackground), tr.createFoo(ctx, "a", "a", 2))
		},
	}, {
		name: "takeover", row: "C7", title: "two Foos ask for one Deployment, and the first is deleted",
		arrange: func(ctx context.Context, tr *trial) error {
			if err := tr.createFoo(ctx, "first", "shared", 1); err != nil {
				return err
			}
			return errors.Join(tr.settled(ctx), tr.createFoo(ctx, "second", "shared", 2))
		},
		act: func(ctx context.Context, tr *trial) error {
			return tr.deleteFoo(ctx, "first", metav1.DeletePropagationBackground)
		},
	}, {
		name: "adopt", row: "C5", title: "a Deployment is handed over to a Foo", oursOnly: noAdoption,
		arrange: func(ctx context.Context, tr *trial) error {
			if _, err := tr.deployments().Create(ctx, newDeployment("orphan"), metav1.CreateOptions{}); err != nil {
				return err
			}
			return tr.createFoo(ctx, "a", "orphan", 2)
		},
		act: func(ctx context.Context, tr *trial) error {
			return tr.patchDeployment(ctx, "orphan", `{"metadata":{"annotations":{"samplecontroller.k8s.io/adopt-by":"a"}}}`)
		},
	}}
}

// passing returns the workloads that a subject passes without a fault. A failure with a
// fault means something only for these.
func passing(writes writeCounts) []workload {
	return slices.DeleteFunc(workloads(), func(w workload) bool { return writes[w.name] == 0 })
}

// errNotReached says that a run made fewer writes than the one without faults, so that
// there was nothing to break.
var errNotReached = errors.New("the write that was to fail was not made")

// breakage is a fault of one write. make is called for each trial.
type breakage struct {
	name string
	make func(r *replica) (fault proxy.Fault, afterwards func())
}

// run runs a workload without a fault and returns the number of its writes.
func (w *workload) run(ctx context.Context, tr *trial) (writes int, err error) {
	r, err := w.prepare(ctx, tr)
	if err != nil {
		return 0, err
	}
	if err := w.act(ctx, tr); err != nil {
		return 0, err
	}
	err = tr.stableAndQuiet(ctx)
	return r.proxy.Writes(), err
}

// runBroken runs a workload in which one write, counted from 1, fails.
func (w *workload) runBroken(ctx context.Context, tr *trial, b breakage, write int) error {
	r, err := w.prepare(ctx, tr)
	if err != nil {
		return err
	}
	fault, afterwards := b.make(r)
	var reached atomic.Bool
	r.proxy.Use(func(call *proxy.Call) proxy.Fault {
		if call.Write != write {
			return nil
		}
		reached.Store(true)
		return fault
	})
	if err := w.act(ctx, tr); err != nil {
		return err
	}
	err = tr.stableAndQuiet(ctx)
	if err == nil && !reached.Load() {
		return errNotReached
	}
	if err != nil || afterwards == nil {
		return err
	}
	afterwards()
	return tr.stableAndQuiet(ctx)
}

func (w *workload) prepare(ctx context.Context, tr *trial) (*replica, error) {
	r, err := tr.start()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.arrange(ctx, tr), tr.settled(ctx)); err != nil {
		return nil, err
	}
	r.proxy.ResetWrites()
	return r, nil
}
