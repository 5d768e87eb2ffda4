// SPDX-License-Identifier: Apache-2.0

// The acts of users and other writers in a step.

package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"example.com/sample-controller/conform/judge"
)

// apply creates or changes an object as a user does who applies a file.
func (tr *trial) apply(object *unstructured.Unstructured, done *judge.Step) error {
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	object = &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(bytes.ReplaceAll(text, []byte("$(NAMESPACE)"), []byte(tr.ns))); err != nil {
		return err
	}
	if !tr.clusterWide {
		object.SetNamespace(tr.ns)
	}
	client, namespace, err := tr.clientFor(object, tr.ns)
	if err != nil {
		return err
	}
	object.SetNamespace(namespace)
	stored, err := client.Apply(tr.ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "conform", Force: true})
	if err != nil {
		return err
	}
	done.Generations[string(stored.GetUID())] = stored.GetGeneration()
	if !tr.isApplied(stored.GetUID()) {
		tr.applied = append(tr.applied, stored)
	}
	return nil
}

// isApplied reports whether an object exists because conform applied it.
func (tr *trial) isApplied(uid types.UID) bool {
	return slices.ContainsFunc(tr.applied, func(a *unstructured.Unstructured) bool { return a.GetUID() == uid })
}

// mark adds a label to each object that conform or the controller created.
func (tr *trial) mark() error {
	created := map[string]bool{}
	for _, call := range tr.calls() {
		if judge.IsWork(call) && call.Subresource == "" {
			created[judge.ResourceName(call.Resource, call.APIGroup)] = true
		}
	}
	return tr.patch(fmt.Sprintf(`{"metadata":{"labels":{%q:"yes"}}}`, judge.Mark), func(state *judge.State, object *unstructured.Unstructured) bool {
		return created[state.Resource] || tr.isApplied(object.GetUID())
	})
}

// touch changes the applied objects in a way that is not compared, so that the controller
// reconciles them.
func (tr *trial) touch() error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, judge.Touched, time.Now().Format(time.RFC3339Nano))
	return tr.patch(patch, func(_ *judge.State, object *unstructured.Unstructured) bool { return tr.isApplied(object.GetUID()) })
}

// patch patches the objects that exist and for which is returns true.
func (tr *trial) patch(patch string, is func(*judge.State, *unstructured.Unstructured) bool) error {
	return tr.each(is, func(client dynamic.ResourceInterface, name string) error {
		_, err := client.Patch(tr.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// deleteChildren deletes the objects that an applied object controls, as a user does by mistake.
func (tr *trial) deleteChildren() error {
	isChild := func(_ *judge.State, object *unstructured.Unstructured) bool {
		owner := metav1.GetControllerOf(object)
		return owner != nil && tr.isApplied(owner.UID)
	}
	return tr.each(isChild, func(client dynamic.ResourceInterface, name string) error {
		background := metav1.DeletePropagationBackground
		return client.Delete(tr.ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	})
}

// each calls do for the objects that exist and for which is returns true. They may be gone by
// then.
func (tr *trial) each(is func(*judge.State, *unstructured.Unstructured) bool, do func(client dynamic.ResourceInterface, name string) error) error {
	history, _ := tr.recorder.history(tr.ns)
	for _, state := range judge.Latest(history) {
		object := &unstructured.Unstructured{Object: state.Object}
		if !is(&state, object) {
			continue
		}
		client, _, err := tr.clientFor(object, tr.ns)
		if err != nil {
			return err
		}
		if err := do(client, object.GetName()); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// deleteAll deletes what conform applied, the last first.
func (tr *trial) deleteAll() error {
	for _, object := range slices.Backward(tr.applied) {
		client, _, err := tr.clientFor(object, tr.ns)
		if err != nil {
			return err
		}
		background := metav1.DeletePropagationBackground
		if err := client.Delete(tr.ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			return err
		}
	}
	return nil
}

// clear deletes what a run with the whole cluster created, also what has finalizers.
func (tr *trial) clear(ctx context.Context) error {
	left := 0
	isClear := func(context.Context) (bool, error) {
		left = 0
		err := tr.each(func(_ *judge.State, object *unstructured.Unstructured) bool {
			return !object.GetCreationTimestamp().Time.Before(tr.began)
		}, func(client dynamic.ResourceInterface, name string) error {
			left++
			if _, err := client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				return err
			}
			return client.Delete(ctx, name, metav1.DeleteOptions{})
		})
		return left == 0, err
	}
	if err := wait.PollUntilContextTimeout(ctx, shortQuiet, slowPath, true, isClear); err != nil {
		return fmt.Errorf("the run left %d objects behind: %w", left, err)
	}
	return nil
}
