/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func deleteNow() metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &background}
}

// deadOwner is B3: the Deployment of a Foo's namesake that is gone, before it is
// collected. Its owner reference is of a version that the API server does not
// serve, so that the garbage collector does not get to it.
func deadOwner(counted) []trialCase {
	return []trialCase{{"of the same name", func(ctx context.Context, tr *trial) error {
		if _, err := tr.startBare(); err != nil {
			return err
		}
		tr.uncollected["a"] = true
		if err := tr.createForeign(ctx, "a", ownedBy("a", "00000000-0000-0000-0000-000000000001"), func(d *appsv1.Deployment) {
			d.OwnerReferences[0].APIVersion = "samplecontroller.k8s.io/v1beta1"
		}); err != nil {
			return err
		}
		return errors.Join(tr.createFoo(ctx, "a", "a", 3), tr.stableAndQuiet(ctx))
	}}}
}

// sharedName is C7: two Foos ask for one Deployment.
func sharedName(counted) []trialCase {
	return []trialCase{{"two Foos", func(ctx context.Context, tr *trial) error {
		if _, err := tr.startBare(); err != nil {
			return err
		}
		return errors.Join(tr.createFoo(ctx, "first", "shared", 1), tr.settled(ctx),
			tr.createFoo(ctx, "second", "shared", 3), tr.stableAndQuiet(ctx))
	}}}
}

// kept is C14: what others have put on a Foo's Deployment stays when the
// controller writes.
func kept(counted) []trialCase {
	return []trialCase{{"an annotation and a sidecar", func(ctx context.Context, tr *trial) error {
		if _, err := tr.startBare(); err != nil {
			return err
		}
		const sidecar = `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:latest"},{"name":"sidecar","image":"busybox"}]}}}}`
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx), tr.annotate(ctx, "a", "mine"),
			tr.patchDeployment(ctx, "a", sidecar)); err != nil {
			return err
		}
		tr.others = append(tr.others, other{deployment: "a", changed: func(d *appsv1.Deployment) error {
			for _, container := range d.Spec.Template.Spec.Containers {
				if container.Name == "sidecar" {
					return nil
				}
			}
			return errors.New("the sidecar that somebody else put into Deployment a is gone")
		}})
		return errors.Join(tr.settled(ctx), tr.scaleFoo(ctx, "a", 2), tr.stableAndQuiet(ctx))
	}}}
}

// orphaned is C4: a Foo is deleted and leaves its Deployment; with C5, a new Foo
// of the name does not take it.
func orphaned(counted) []trialCase {
	orphan := func(ctx context.Context, tr *trial) error {
		if _, err := tr.start(); err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx), tr.deleteFoo(ctx, "a", metav1.DeletePropagationOrphan)); err != nil {
			return err
		}
		return tr.await(ctx, "Deployment a is an orphan", func(ctx context.Context) error {
			d, err := tr.deployments().Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if len(d.OwnerReferences) > 0 {
				return fmt.Errorf("it has the owners %v", d.OwnerReferences)
			}
			tr.leaveAlone(d)
			return nil
		})
	}
	return []trialCase{
		{"stays", func(ctx context.Context, tr *trial) error {
			return errors.Join(orphan(ctx, tr), tr.stableAndQuiet(ctx))
		}},
		{"and a Foo of the same name", func(ctx context.Context, tr *trial) error {
			return errors.Join(orphan(ctx, tr), tr.createFoo(ctx, "a", "a", 2), tr.stableAndQuiet(ctx))
		}},
	}
}

// foreground is C3: a Foo that waits for its Deployment to go gets no new one.
func foreground(counted) []trialCase {
	return []trialCase{{"held by a finalizer", func(ctx context.Context, tr *trial) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx),
			tr.patchFoo(ctx, "a", `{"metadata":{"finalizers":["faults.example.com/hold"]}}`), tr.settled(ctx),
			tr.deleteFoo(ctx, "a", metav1.DeletePropagationForeground)); err != nil {
			return err
		}
		err = tr.await(ctx, "Deployment a is gone", func(ctx context.Context) error {
			list, err := tr.deployments().List(ctx, metav1.ListOptions{})
			if err == nil && len(list.Items) > 0 {
				err = errors.New("it is still there")
			}
			return err
		})
		if err != nil {
			return err
		}
		r.proxy.CountAnew()
		pause(ctx, quiet)
		if again, err := tr.deployments().List(ctx, metav1.ListOptions{}); err != nil || len(again.Items) > 0 {
			return errors.Join(err, errors.New("a Foo that is being deleted got a new Deployment"))
		}
		return errors.Join(tr.patchFoo(ctx, "a", `{"metadata":{"finalizers":null}}`), tr.stableAndQuiet(ctx))
	}}}
}

// atRest is the promise that Foos which are as they should be cost nothing,
// resyncs included.
func atRest(counted) []trialCase {
	return []trialCase{{"some resyncs", func(ctx context.Context, tr *trial) error {
		flags, howLong := []string{"-resync=1s"}, 5*time.Second
		if tr.subject.resyncs {
			flags, howLong = nil, 65*time.Second // two of its resyncs
		}
		if _, err := tr.start(flags...); err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.createFoo(ctx, "b", "b", 1), tr.settled(ctx)); err != nil {
			return err
		}
		since := time.Now()
		pause(ctx, howLong)
		writes := 0
		for _, call := range tr.calls() {
			if call.Began.After(since) && call.IsWrite() {
				writes++
			}
		}
		if writes > 0 {
			return fmt.Errorf("nothing happens, and it writes: %d requests for two Foos in %v", writes, howLong)
		}
		return tr.stableAndQuiet(ctx)
	}}}
}
