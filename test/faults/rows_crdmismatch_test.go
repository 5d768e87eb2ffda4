// SPDX-License-Identifier: Apache-2.0

// Row G6: a CustomResourceDefinition that the program was not made for.

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

// crdMismatch is a change of the CRD that the program was not made for.
type crdMismatch struct {
	// patch is applied to the shipped CRD.
	patch string
	// inForce reports whether the change is in force, from the answer to a dry run of a
	// status with a condition.
	inForce func(stored *samplev1alpha1.Foo, err error) bool
}

// withoutConditions prunes the conditions: the API server drops them and reports success.
func withoutConditions() crdMismatch {
	return crdMismatch{
		patch: `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions"}]`,
		inForce: func(stored *samplev1alpha1.Foo, err error) bool {
			return err == nil && len(stored.Status.Conditions) == 0
		},
	}
}

// withoutStatusSubresource removes the status subresource.
func withoutStatusSubresource() crdMismatch {
	return crdMismatch{
		patch:   `[{"op":"remove","path":"/spec/versions/0/subresources/status"}]`,
		inForce: func(_ *samplev1alpha1.Foo, err error) bool { return apierrors.IsNotFound(err) },
	}
}

// run is G6: a status that can't be stored is not sent again at each resync, only logged,
// and Deployments are reconciled.
func (m crdMismatch) run(ctx context.Context, tr *trial, p *controlPlane) error {
	if err := tr.createFoo(ctx, "a", "a", 1); err != nil {
		return err
	}
	defer p.install(ctx) //nolint:errcheck // runs after a failure, and the test reports that one
	err := tr.withoutRecording(ctx, func() error {
		return errors.Join(p.kubectl(ctx, "patch", "crd", "foos.samplecontroller.k8s.io", "--type=json", "--patch="+m.patch), m.awaitInForce(ctx, tr, true))
	})
	if err != nil {
		return err
	}
	flags, resyncs := tr.resyncFlags()
	tr.timeout = waitTimeout + resyncs
	r, err := tr.start(flags...)
	if err != nil {
		return err
	}
	tr.statusUnwritable = true
	if err := errors.Join(tr.awaitConverged(ctx, "a"), tr.scaleFoo(ctx, "a", 2), tr.createFoo(ctx, "b", "b", 1), tr.awaitConverged(ctx, "a", "b")); err != nil {
		return err
	}
	if err := tr.judge(ctx, resyncs); err != nil {
		return err
	}
	if tr.subject.conditions && !strings.Contains(r.process.log.String(), "CustomResourceDefinition") {
		return errors.New("its log does not mention the CustomResourceDefinition")
	}
	tr.statusUnwritable = false
	err = tr.withoutRecording(ctx, func() error { return errors.Join(p.install(ctx), m.awaitInForce(ctx, tr, false)) })
	r.process.crash() // the new process tries at once, the old one only after a time
	if err := errors.Join(err, tr.scaleFoo(ctx, "a", 3), tr.scaleFoo(ctx, "b", 2), tr.stableAndQuiet(ctx)); err != nil {
		return fmt.Errorf("with the shipped CRD again: %w", err)
	}
	return nil
}

// awaitInForce waits until the changed CRD is in force, or no longer.
func (m crdMismatch) awaitInForce(ctx context.Context, tr *trial, inForce bool) error {
	return tr.await(ctx, fmt.Sprintf("the changed CRD is in force: %v", inForce), func(ctx context.Context) error {
		foo, err := tr.foosClient().Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		meta.SetStatusCondition(&foo.Status.Conditions, metav1.Condition{Type: "Probe", Status: metav1.ConditionTrue, Reason: "Probe"})
		stored, err := tr.foosClient().UpdateStatus(ctx, foo, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if m.inForce(stored, err) != inForce || !inForce && err != nil {
			return errors.Join(errors.New("not yet"), err)
		}
		return nil
	})
}
