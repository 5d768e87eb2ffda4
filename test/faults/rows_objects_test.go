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
	return []trialCase{ownedElsewhere("of the same name", "samplecontroller.k8s.io/v1beta1")}
}

// otherGroup is C13: the owner is a Foo, and of another API.
func otherGroup(counted) []trialCase {
	return []trialCase{ownedElsewhere("of the same name", "faults.example.com/v1alpha1")}
}

func ownedElsewhere(name, apiVersion string) trialCase {
	return trialCase{name, func(ctx context.Context, tr *trial) error {
		if _, err := tr.startBare(); err != nil {
			return err
		}
		tr.uncollected["a"] = true
		if err := tr.createForeign(ctx, "a", ownedBy("a", "00000000-0000-0000-0000-000000000001"), func(d *appsv1.Deployment) {
			d.OwnerReferences[0].APIVersion = apiVersion
		}); err != nil {
			return err
		}
		return errors.Join(tr.createFoo(ctx, "a", "a", 3), tr.stableAndQuiet(ctx))
	}}
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
		return errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx), tr.orphan(ctx))
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

// orphan deletes Foo a, and has the oracle see to it that its Deployment stays an
// orphan.
func (tr *trial) orphan(ctx context.Context) error {
	if err := tr.deleteFoo(ctx, "a", metav1.DeletePropagationOrphan); err != nil {
		return err
	}
	return tr.await(ctx, "Deployment a is an orphan", func(ctx context.Context) error {
		if _, err := tr.foosClient().Get(ctx, "a", metav1.GetOptions{}); err == nil {
			return errors.New("its Foo is still there")
		}
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
				err = errors.New("it is still there, or again")
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

// stripped is C6: a user takes the owner reference off a Foo's Deployment. It is
// an orphan then, and nobody fights over it.
func stripped(counted) []trialCase {
	return []trialCase{{"by a user", func(ctx context.Context, tr *trial) error {
		if _, err := tr.startBare(); err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx),
			tr.patchDeployment(ctx, "a", `{"metadata":{"ownerReferences":null}}`)); err != nil {
			return err
		}
		d, err := tr.deployments().Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		tr.leaveAlone(d)
		return errors.Join(tr.scaleFoo(ctx, "a", 2), tr.stableAndQuiet(ctx))
	}}}
}

// terminating is C9: the Deployment is on its way out and not gone yet.
func terminating(counted) []trialCase {
	return []trialCase{{"held by a finalizer", func(ctx context.Context, tr *trial) error {
		if _, err := tr.start(); err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx),
			tr.patchDeployment(ctx, "a", `{"metadata":{"finalizers":["faults.example.com/hold"]}}`), tr.settled(ctx),
			tr.deployments().Delete(ctx, "a", deleteNow())); err != nil {
			return err
		}
		pause(ctx, quiet/3)
		if err := tr.noWork(ctx, quiet); err != nil {
			return err
		}
		return errors.Join(tr.patchDeployment(ctx, "a", `{"metadata":{"finalizers":null}}`), tr.stableAndQuiet(ctx))
	}}}
}

// leavingNamespace is C10: the namespace goes, and a finalizer keeps the Foo a while longer.
func leavingNamespace(counted) []trialCase {
	return []trialCase{{"with a Foo held by a finalizer", func(ctx context.Context, tr *trial) error {
		if _, err := tr.start(); err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx),
			tr.patchFoo(ctx, "a", `{"metadata":{"finalizers":["faults.example.com/hold"]}}`), tr.settled(ctx),
			tr.cluster.kube.CoreV1().Namespaces().Delete(ctx, tr.ns, metav1.DeleteOptions{})); err != nil {
			return err
		}
		err := tr.await(ctx, "Deployment a is gone", func(ctx context.Context) error {
			list, err := tr.deployments().List(ctx, metav1.ListOptions{})
			if err == nil && len(list.Items) > 0 {
				err = errors.New("it is still there, or again")
			}
			foo, fooErr := tr.foosClient().Get(ctx, "a", metav1.GetOptions{})
			if fooErr == nil && foo.DeletionTimestamp == nil {
				fooErr = errors.New("its Foo is not being deleted yet")
			}
			return errors.Join(err, fooErr)
		})
		if err != nil {
			return err
		}
		pause(ctx, 2*quiet) // the deletion is news, which may be told
		return errors.Join(tr.noWork(ctx, 4*quiet), tr.patchFoo(ctx, "a", `{"metadata":{"finalizers":null}}`))
	}}}
}
