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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// newDefinition is C12. With the definition all Foos go, and their Deployments.
func newDefinition(ctx context.Context, tr *trial, p *plane) error {
	r, err := tr.start()
	if err != nil {
		return err
	}
	if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
		return err
	}
	if err := tr.unrecorded(ctx, func() error { return tr.replaceDefinition(ctx, p, r) }); err != nil {
		return err
	}
	return errors.Join(tr.createFoo(ctx, "a", "a", 2), tr.stableAndQuiet(ctx))
}

// replaceDefinition deletes the definition, and makes it again when all is gone.
func (tr *trial) replaceDefinition(ctx context.Context, p *plane, r *replica) error {
	if err := p.kubectl(ctx, "delete", "crd", "foos.samplecontroller.k8s.io", "--wait=true", "--timeout=60s"); err != nil {
		return err
	}
	pause(ctx, 2*quiet)
	if r.process.hasEnded() {
		return errors.New("it has ended")
	}
	err := tr.await(ctx, "Deployment a is gone", func(ctx context.Context) error {
		list, err := tr.deployments().List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = errors.New("it is still there")
		}
		return err
	})
	return errors.Join(err, p.install(ctx))
}

// withoutRules takes the rules for spec.deploymentName out of the definition.
const withoutRules = `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/deploymentName/x-kubernetes-validations"}]`

// impossibleName is no name of a Deployment.
const impossibleName = "Not A Name"

// storedBefore is F1: a Foo that no Deployment can be made of was stored before
// the definition had its rules.
func storedBefore(ctx context.Context, tr *trial, p *plane) error {
	tr.patience = 4 * patience // a refused write is tried again later and later, up to 5 minutes
	if _, err := tr.start(); err != nil {
		return err
	}
	if err := tr.unrecorded(ctx, func() error { return tr.storePoison(ctx, p) }); err != nil {
		return err
	}
	since := time.Now()
	tr.refused["poison"] = samplev1alpha1.ReasonDeploymentFailed
	if err := errors.Join(tr.stableAndQuiet(ctx), tr.says(ctx, "poison", impossibleName)); err != nil {
		return fmt.Errorf("with a Foo that can't be: %w", err)
	}
	if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.stableAndQuiet(ctx), tr.scaleFoo(ctx, "a", 2)); err != nil {
		return fmt.Errorf("beside a Foo that can't be: %w", err)
	}
	pause(ctx, 4*quiet)
	if attempts := tr.deploymentWrites(since); attempts > fewAttempts {
		return fmt.Errorf("with a Foo that can't be: %d writes to Deployments in %v", attempts, time.Since(since).Round(time.Second))
	}
	delete(tr.refused, "poison")
	return errors.Join(tr.renameDeployment(ctx, "poison", "remedy"), tr.stableAndQuiet(ctx))
}

// storePoison stores a Foo that the shipped definition refuses, and sees to it
// that it is in force again.
func (tr *trial) storePoison(ctx context.Context, p *plane) error {
	defer p.install(ctx) //nolint:errcheck // after a failure, which is what is told
	if err := p.kubectl(ctx, "patch", "crd", "foos.samplecontroller.k8s.io", "--type=json", "--patch="+withoutRules); err != nil {
		return err
	}
	err := tr.await(ctx, "a Foo that can't be is stored", func(ctx context.Context) error {
		return tr.createFoo(ctx, "poison", impossibleName, 1)
	})
	if err := errors.Join(err, p.install(ctx)); err != nil {
		return err
	}
	return tr.await(ctx, "the shipped definition is in force", func(ctx context.Context) error {
		_, err := tr.foosClient().Create(ctx, &samplev1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Name: "another"}, Spec: samplev1alpha1.FooSpec{DeploymentName: impossibleName},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsInvalid(err) {
			return errors.Join(errors.New("it takes any name"), err)
		}
		return nil
	})
}
