// SPDX-License-Identifier: Apache-2.0

// Rows C and B3: owners, deletion, adoption, and what other writers put on a Deployment.

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func deleteNow() metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &background}
}

// deletedOwner is B3: the Deployment of a deleted Foo of the same name has not been
// garbage collected. Its owner reference has a version that the API server does not
// serve, so that the garbage collector ignores it.
func deletedOwner(writeCounts) []trialCase {
	return []trialCase{foreignOwner("of the same name", "samplecontroller.k8s.io/v1beta1")}
}

// otherGroup is C13: the owner is a Foo of another API group.
func otherGroup(writeCounts) []trialCase {
	return []trialCase{foreignOwner("of the same name", "faults.example.com/v1alpha1")}
}

func foreignOwner(name, apiVersion string) trialCase {
	return trialCase{name, func(ctx context.Context, tr *trial) error {
		if _, err := tr.startExempt(); err != nil {
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

// sharedName is C7: two Foos ask for the same Deployment.
func sharedName(writeCounts) []trialCase {
	return []trialCase{{"two Foos", func(ctx context.Context, tr *trial) error {
		if _, err := tr.startExempt(); err != nil {
			return err
		}
		return errors.Join(tr.createFoo(ctx, "first", "shared", 1), tr.settled(ctx),
			tr.createFoo(ctx, "second", "shared", 3), tr.stableAndQuiet(ctx))
	}}}
}

// foreignFieldsKept is C14: what other writers put on a Foo's Deployment survives an
// update.
func foreignFieldsKept(writeCounts) []trialCase {
	return []trialCase{{"an annotation and a sidecar", func(ctx context.Context, tr *trial) error {
		if _, err := tr.startExempt(); err != nil {
			return err
		}
		const sidecar = `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:latest"},{"name":"sidecar","image":"busybox"}]}}}}`
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx), tr.annotate(ctx, "a", "mine"),
			tr.patchDeployment(ctx, "a", sidecar)); err != nil {
			return err
		}
		tr.protected = append(tr.protected, protected{deployment: "a", changed: func(d *appsv1.Deployment) error {
			for _, container := range d.Spec.Template.Spec.Containers {
				if container.Name == "sidecar" {
					return nil
				}
			}
			return errors.New("the sidecar that somebody else added to Deployment a is gone")
		}})
		return errors.Join(tr.settled(ctx), tr.scaleFoo(ctx, "a", 2), tr.stableAndQuiet(ctx))
	}}}
}

// orphanDeletion is C4: a Foo is deleted and its Deployment orphaned. With C5, a new Foo
// of the same name does not adopt it.
func orphanDeletion(writeCounts) []trialCase {
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

// orphan deletes Foo a with orphan propagation, and protects its Deployment.
func (tr *trial) orphan(ctx context.Context) error {
	if err := tr.deleteFoo(ctx, "a", metav1.DeletePropagationOrphan); err != nil {
		return err
	}
	return tr.await(ctx, "Deployment a is an orphan", func(ctx context.Context) error {
		if _, err := tr.foosClient().Get(ctx, "a", metav1.GetOptions{}); err == nil {
			return errors.New("its Foo still exists")
		}
		d, err := tr.deployments().Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(d.OwnerReferences) > 0 {
			return fmt.Errorf("it has the owners %v", d.OwnerReferences)
		}
		tr.protect(d)
		return nil
	})
}

// foregroundDeletion is C3: a Foo that waits for the deletion of its Deployment gets no
// new one.
func foregroundDeletion(writeCounts) []trialCase {
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
				err = errors.New("it still exists, or exists again")
			}
			return err
		})
		if err != nil {
			return err
		}
		r.proxy.ResetWrites()
		pause(ctx, quiet)
		if again, err := tr.deployments().List(ctx, metav1.ListOptions{}); err != nil || len(again.Items) > 0 {
			return errors.Join(err, errors.New("a Foo that is being deleted got a new Deployment"))
		}
		return errors.Join(tr.patchFoo(ctx, "a", `{"metadata":{"finalizers":null}}`), tr.stableAndQuiet(ctx))
	}}}
}

// ownerRemoved is C6: a user removes the owner reference from a Foo's Deployment. The
// Deployment is an orphan then, and the controller does not write to it.
func ownerRemoved(writeCounts) []trialCase {
	return []trialCase{{"by a user", func(ctx context.Context, tr *trial) error {
		if _, err := tr.startExempt(); err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx),
			takeAway(ctx, tr)); err != nil {
			return err
		}
		return errors.Join(tr.scaleFoo(ctx, "a", 2), tr.stableAndQuiet(ctx))
	}}}
}

// takeAway makes Deployment a one that no Foo controls, and protects it.
func takeAway(ctx context.Context, tr *trial) error {
	orphan, err := tr.deployments().Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{FieldManager: "somebody"})
	if err == nil {
		tr.protect(orphan)
	}
	return err
}

// terminatingDeployment is C9: the Deployment is being deleted and still exists.
func terminatingDeployment(writeCounts) []trialCase {
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
		if err := tr.checkNoWrites(ctx, quiet); err != nil {
			return err
		}
		return errors.Join(tr.patchDeployment(ctx, "a", `{"metadata":{"finalizers":null}}`), tr.stableAndQuiet(ctx))
	}}}
}

// terminatingNamespace is C10: the namespace is being deleted, and a finalizer keeps the
// Foo.
func terminatingNamespace(writeCounts) []trialCase {
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
				err = errors.New("it still exists, or exists again")
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
		pause(ctx, 2*quiet) // the status may report the deletion
		return errors.Join(tr.checkNoWrites(ctx, 4*quiet), tr.patchFoo(ctx, "a", `{"metadata":{"finalizers":null}}`))
	}}}
}

// adopt creates a Deployment that asks for adoption, and the Foo that adopts it.
func (tr *trial) adopt(ctx context.Context, options ...func(*appsv1.Deployment)) error {
	asking := func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{samplev1alpha1.AnnotationAdoptBy: "a"}
	}
	_, err := tr.deployments().Create(ctx, newDeployment("a", append(options, asking)...), metav1.CreateOptions{FieldManager: "somebody"})
	return errors.Join(err, tr.createFoo(ctx, "a", "a", 2), tr.settled(ctx))
}

// adoptedOnce is G8: to hand a Deployment over once does not hand it over for ever.
func adoptedOnce(writeCounts) []trialCase {
	adopted := func(name string, change func(context.Context, *trial) error) trialCase {
		return trialCase{name, func(ctx context.Context, tr *trial) error {
			r, err := tr.start()
			if err != nil {
				return err
			}
			if err := tr.adopt(ctx); err != nil {
				return err
			}
			return errors.Join(change(ctx, tr), tr.stableAndQuiet(ctx), r.checkAdoptByRemoved())
		}}
	}
	return []trialCase{
		adopted("the owner is taken away", takeAway),
		adopted("an orphan, and a Foo of the same name", func(ctx context.Context, tr *trial) error {
			return errors.Join(tr.orphan(ctx), tr.createFoo(ctx, "a", "a", 1))
		}),
	}
}

// checkAdoptByRemoved returns an error unless the update that adopts a Deployment removes
// the annotation that asked for it.
func (r *replica) checkAdoptByRemoved() error {
	for _, call := range r.proxy.Calls() {
		var d appsv1.Deployment
		if !isUpdate(call) || json.Unmarshal(call.Answer, &d) != nil || metav1.GetControllerOf(&d) == nil {
			continue
		}
		if d.Annotations[samplev1alpha1.AnnotationAdoptBy] != "" {
			return errors.New("it adopted the Deployment and left the annotation that asked for it")
		}
	}
	return nil
}

// longSelector is G7: the selector of an adopted Deployment is longer than a status may
// hold, and a part of it would select other Pods.
func longSelector(writeCounts) []trialCase {
	return []trialCase{{"of 6,000 characters", func(ctx context.Context, tr *trial) error {
		if _, err := tr.start(); err != nil {
			return err
		}
		values := []string{"nginx"}
		for i := range 100 {
			values = append(values, fmt.Sprintf("%03d-%s", i, strings.Repeat("x", 56)))
		}
		err := tr.adopt(ctx, func(d *appsv1.Deployment) {
			d.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values},
			}}
		})
		if err != nil {
			return err
		}
		foo, err := tr.foosClient().Get(ctx, "a", metav1.GetOptions{})
		if err == nil && foo.Status.Selector != "" {
			err = fmt.Errorf("status.selector has %d characters", len(foo.Status.Selector))
		}
		return errors.Join(err, tr.scaleFoo(ctx, "a", 3), tr.stableAndQuiet(ctx))
	}}}
}
