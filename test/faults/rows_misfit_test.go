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
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// misfit is a definition that is not the one which the program was made for.
type misfit struct {
	// patch makes it of the shipped one.
	patch string
	// inForce tells by a dry run of a status with a condition that it is.
	inForce func(stored *samplev1alpha1.Foo, err error) bool
}

// prunes has no conditions in the status: the API server drops them, and is content.
func prunes() misfit {
	return misfit{
		patch: `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions"}]`,
		inForce: func(stored *samplev1alpha1.Foo, err error) bool {
			return err == nil && len(stored.Status.Conditions) == 0
		},
	}
}

// speechless has no status that could be written for itself.
func speechless() misfit {
	return misfit{
		patch:   `[{"op":"remove","path":"/spec/versions/0/subresources/status"}]`,
		inForce: func(_ *samplev1alpha1.Foo, err error) bool { return apierrors.IsNotFound(err) },
	}
}

// run is G6: what can't be told is not told again at each resync, but in the log;
// all else goes on.
func (m misfit) run(ctx context.Context, tr *trial, p *plane) error {
	if err := tr.createFoo(ctx, "a", "a", 1); err != nil {
		return err
	}
	defer p.install(ctx) //nolint:errcheck // after a failure, which is what is told
	err := tr.unrecorded(ctx, func() error {
		return errors.Join(p.kubectl(ctx, "patch", "crd", "foos.samplecontroller.k8s.io", "--type=json", "--patch="+m.patch), m.awaitForce(ctx, tr, true))
	})
	if err != nil {
		return err
	}
	flags, resyncs := tr.resyncing()
	tr.patience = patience + resyncs
	r, err := tr.start(flags...)
	if err != nil {
		return err
	}
	tr.mute = true
	if err := errors.Join(tr.awaitRight(ctx, "a"), tr.scaleFoo(ctx, "a", 2), tr.createFoo(ctx, "b", "b", 1), tr.awaitRight(ctx, "a", "b")); err != nil {
		return err
	}
	if err := tr.judge(ctx, resyncs); err != nil {
		return err
	}
	if tr.subject.conditions && !strings.Contains(r.process.log.String(), "CustomResourceDefinition") {
		return errors.New("its log does not say that the CustomResourceDefinition does not fit")
	}
	tr.mute = false
	err = tr.unrecorded(ctx, func() error { return errors.Join(p.install(ctx), m.awaitForce(ctx, tr, false)) })
	r.process.crash() // a new process need not wait for the time at which the old one would have tried again
	if err := errors.Join(err, tr.scaleFoo(ctx, "a", 3), tr.scaleFoo(ctx, "b", 2), tr.stableAndQuiet(ctx)); err != nil {
		return fmt.Errorf("when the definition fits again: %w", err)
	}
	return nil
}

// awaitForce waits until the definition is in force, or no longer.
func (m misfit) awaitForce(ctx context.Context, tr *trial, inForce bool) error {
	return tr.await(ctx, fmt.Sprintf("the definition is in force: %v", inForce), func(ctx context.Context) error {
		foo, err := tr.foosClient().Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		meta.SetStatusCondition(&foo.Status.Conditions, metav1.Condition{Type: "Probe", Status: metav1.ConditionTrue, Reason: "Probe"})
		stored, err := tr.foosClient().UpdateStatus(ctx, foo, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if m.inForce(stored, err) != inForce || !inForce && err != nil {
			return errors.Join(errors.New("it is not so yet"), err)
		}
		return nil
	})
}
