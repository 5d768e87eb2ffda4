// SPDX-License-Identifier: Apache-2.0

// Rows C12 and F1: the CustomResourceDefinition is deleted, or had no validation rules
// before.

package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// recreatedCRD is C12. With the CRD all Foos are deleted, and their Deployments.
func recreatedCRD(ctx context.Context, tr *trial, p *controlPlane) error {
	r, err := tr.start()
	if err != nil {
		return err
	}
	if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
		return err
	}
	if err := tr.withoutRecording(ctx, func() error { return tr.recreateCRD(ctx, p, r) }); err != nil {
		return err
	}
	return errors.Join(tr.createFoo(ctx, "a", "a", 2), tr.stableAndQuiet(ctx))
}

// recreateCRD deletes the CRD, and creates it again after the Deployments are gone.
func (tr *trial) recreateCRD(ctx context.Context, p *controlPlane, r *replica) error {
	if err := p.kubectl(ctx, "delete", "crd", "foos.samplecontroller.k8s.io", "--wait=true", "--timeout=60s"); err != nil {
		return err
	}
	pause(ctx, 2*quiet)
	if r.process.hasEnded() {
		return errors.New("the process has ended")
	}
	err := tr.await(ctx, "Deployment a is gone", func(ctx context.Context) error {
		list, err := tr.deployments().List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = errors.New("it still exists")
		}
		return err
	})
	return errors.Join(err, p.install(ctx))
}

// fooAt is when the Foo of a fresh installation is created, from the start of the API
// server on. The server reads the kinds 30 s after its start, which is neither at once nor
// as late as a long back-off would have it.
const fooAt = 15 * time.Second

// freshInstallation is C12: a Foo is created right after its CRD. The admission plugin
// OwnerReferencesPermissionEnforcement refuses owners of a kind that it does not know yet.
// Creates that are not stored measure for how long.
func freshInstallation(ctx context.Context, tr *trial, p *controlPlane) error {
	err := tr.withoutRecording(ctx, func() error {
		err := p.kubectl(ctx, "delete", "crd", "foos.samplecontroller.k8s.io", "--wait=true", "--timeout=60s")
		p.kill(apiServer)
		if err := errors.Join(err, p.start(ctx, apiServer)); err != nil {
			return err
		}
		up := time.Now()
		// The plugin reads the kinds when it needs them first: without the Foo.
		account, err := kubernetes.NewForConfig(tr.cluster.exempt)
		if err != nil {
			return err
		}
		_, err = account.AppsV1().Deployments(tr.ns).Create(ctx, footest.UnstoredDeployment("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) {
			return errors.Join(errors.New("the API server knows the kind of a CRD that is deleted"), err)
		}
		err = p.install(ctx)
		pause(ctx, time.Until(up.Add(fooAt)))
		return err
	})
	if err != nil {
		return err
	}
	r, err := tr.start()
	if err != nil {
		return err
	}
	if err := tr.createFoo(ctx, "a", "a", 1); err != nil {
		return err
	}
	began := time.Now()
	if err := testcluster.AwaitFoosAsOwners(ctx, tr.cluster.exempt, tr.ns, footest.Primary.Resource, footest.Unstored("probe")); err != nil {
		return err
	}
	allowed := time.Since(began)
	if err := errors.Join(tr.awaitCall(ctx, r, isCreate), tr.stableAndQuiet(ctx)); err != nil {
		return err
	}
	took := r.callThat(isCreate).Began.Sub(began)
	if took > 2*allowed+time.Second {
		return fmt.Errorf("the Deployment was created after %v, and the API server had allowed it after %v", took, allowed)
	}
	return nil
}

// withoutValidation removes the validation rules of spec.deploymentName from the CRD.
const withoutValidation = `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/deploymentName/x-kubernetes-validations"}]`

// invalidName is not a valid name of a Deployment.
const invalidName = "Not A Name"

// storedBeforeValidation is F1: a Foo whose Deployment can't be created was stored before
// the CRD had its validation rules.
func storedBeforeValidation(ctx context.Context, tr *trial, p *controlPlane) error {
	tr.timeout = 4 * waitTimeout // the back-off of a refused write grows to 5 minutes
	if _, err := tr.start(); err != nil {
		return err
	}
	if err := tr.withoutRecording(ctx, func() error { return tr.storeInvalidFoo(ctx, p) }); err != nil {
		return err
	}
	since := time.Now()
	tr.refused["invalid"] = samplev1alpha1.ReasonDeploymentFailed
	if err := errors.Join(tr.stableAndQuiet(ctx), tr.checkMessage(ctx, "invalid", invalidName)); err != nil {
		return fmt.Errorf("with an invalid Foo: %w", err)
	}
	if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.stableAndQuiet(ctx), tr.scaleFoo(ctx, "a", 2)); err != nil {
		return fmt.Errorf("beside an invalid Foo: %w", err)
	}
	pause(ctx, 4*quiet)
	if attempts := tr.deploymentWrites(since); attempts > maxAttempts {
		return fmt.Errorf("with an invalid Foo: %d writes to Deployments in %v", attempts, time.Since(since).Round(time.Second))
	}
	delete(tr.refused, "invalid")
	return errors.Join(tr.renameDeployment(ctx, "invalid", "valid"), tr.stableAndQuiet(ctx))
}

// storeInvalidFoo stores a Foo that the shipped CRD refuses, and waits until the shipped
// CRD is in force again.
func (tr *trial) storeInvalidFoo(ctx context.Context, p *controlPlane) error {
	defer p.install(ctx) //nolint:errcheck // runs after a failure, and the test reports that one
	if err := p.kubectl(ctx, "patch", "crd", "foos.samplecontroller.k8s.io", "--type=json", "--patch="+withoutValidation); err != nil {
		return err
	}
	err := tr.await(ctx, "the invalid Foo is stored", func(ctx context.Context) error {
		return tr.createFoo(ctx, "invalid", invalidName, 1)
	})
	if err := errors.Join(err, p.install(ctx)); err != nil {
		return err
	}
	return tr.await(ctx, "the shipped CRD is in force", func(ctx context.Context) error {
		_, err := tr.foosClient().Create(ctx, &samplev1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Name: "another"}, Spec: samplev1alpha1.FooSpec{DeploymentName: invalidName},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsInvalid(err) {
			return errors.Join(errors.New("it accepts any name"), err)
		}
		return nil
	})
}

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
