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
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// fewAttempts is more than a back-off makes within minutes that begins with
// milliseconds and is doubled each time.
const fewAttempts = 25

// forbiddenWord begins what the policy says.
const forbiddenWord = "Verboten"

// manyWords is a message of nearly the 5 KiB that a policy's may have, in letters
// of more than one byte, which is another for each Deployment that is tried.
func manyWords() string {
	return fmt.Sprintf("'%s: ' + string(object.metadata.uid) + ': ' + '%s'", forbiddenWord, strings.Repeat("nein – ", 550))
}

// refusedByPolicy is D12: a policy refuses what one of the Foos needs.
func refusedByPolicy(counted) []trialCase {
	return []trialCase{
		{"a create", refusedWrite(admissionregistrationv1.Create, func(ctx context.Context, tr *trial) error {
			return tr.createFoo(ctx, "b", "b", 1)
		})},
		{"an update", refusedWrite(admissionregistrationv1.Update, func(ctx context.Context, tr *trial) error {
			return tr.scaleFoo(ctx, "b", 3)
		})},
	}
}

func refusedWrite(operation admissionregistrationv1.OperationType, ask func(context.Context, *trial) error) func(context.Context, *trial) error {
	return func(ctx context.Context, tr *trial) error {
		tr.patience = 4 * patience // a refused write is tried again later and later, up to 5 minutes
		if _, err := tr.start(); err != nil {
			return err
		}
		err := tr.createFoo(ctx, "a", "a", 1)
		if operation == admissionregistrationv1.Update {
			err = errors.Join(err, tr.createFoo(ctx, "b", "b", 1))
		}
		if err := errors.Join(err, tr.settled(ctx)); err != nil {
			return err
		}
		defer tr.withdraw(ctx) //nolint:errcheck // after a failure, which is what is told
		if err := tr.deny(ctx, "b", operation, manyWords()); err != nil {
			return err
		}
		if err := tr.awaitDenied(ctx, "b", operation); err != nil {
			return err
		}
		since := time.Now()
		tr.refused["b"] = samplev1alpha1.ReasonDeploymentFailed
		if err := errors.Join(ask(ctx, tr), tr.stableAndQuiet(ctx), tr.says(ctx, "b", forbiddenWord)); err != nil {
			return fmt.Errorf("while it is refused: %w", err)
		}
		if err := errors.Join(tr.scaleFoo(ctx, "a", 2), tr.createFoo(ctx, "c", "c", 1), tr.stableAndQuiet(ctx)); err != nil {
			return fmt.Errorf("while another's is refused: %w", err)
		}
		if attempts := tr.deploymentWrites(since); attempts > fewAttempts {
			return fmt.Errorf("while it is refused: %d writes to Deployments in %v", attempts, time.Since(since).Round(time.Second))
		}
		delete(tr.refused, "b")
		return errors.Join(tr.withdraw(ctx), tr.stableAndQuiet(ctx))
	}
}

// awaitDenied waits until the policy of deny is in force.
func (tr *trial) awaitDenied(ctx context.Context, deployment string, operation admissionregistrationv1.OperationType) error {
	dryRun := []string{metav1.DryRunAll}
	return tr.await(ctx, "the policy is in force", func(ctx context.Context) error {
		var err error
		if operation == admissionregistrationv1.Create {
			_, err = tr.deployments().Create(ctx, newDeployment(deployment), metav1.CreateOptions{DryRun: dryRun})
		} else {
			_, err = tr.deployments().Patch(ctx, deployment, "application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{DryRun: dryRun})
		}
		if err == nil || !strings.Contains(err.Error(), forbiddenWord) {
			return errors.Join(errors.New("it refuses nothing yet"), err)
		}
		return nil
	})
}

// readable is how long, in bytes, the message of a condition may be: kubectl
// prints it in a line.
const readable = 1024

// says returns an error if a Foo's condition does not say a word, or says too many.
func (tr *trial) says(ctx context.Context, foo, word string) error {
	if !tr.subject.conditions {
		return nil
	}
	found, err := tr.foosClient().Get(ctx, foo, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ready := meta.FindStatusCondition(found.Status.Conditions, samplev1alpha1.ConditionReady)
	switch {
	case ready == nil || !strings.Contains(ready.Message, word):
		return fmt.Errorf("the condition of Foo %s does not say %q: %+v", foo, word, ready)
	case len(ready.Message) > readable:
		return fmt.Errorf("the condition of Foo %s has a message of %d bytes", foo, len(ready.Message))
	}
	return nil
}

// deploymentWrites counts what was to change Deployments.
func (tr *trial) deploymentWrites(since time.Time) int {
	writes := 0
	for _, call := range tr.calls() {
		if call.Began.After(since) && call.IsWrite() && call.Resource == "deployments" {
			writes++
		}
	}
	return writes
}

// overruledByPolicy is D12: a policy changes each Deployment that is written, and
// no resync tempts the controller to write it again.
func overruledByPolicy(counted) []trialCase {
	return []trialCase{{"the replicas", cappedReplicas}, {"the image", mirroredImage}}
}

func cappedReplicas(ctx context.Context, tr *trial) error {
	flags, resyncs := tr.resyncing()
	tr.patience = patience + resyncs
	if _, err := tr.start(flags...); err != nil {
		return err
	}
	defer tr.withdraw(ctx) //nolint:errcheck // after a failure, which is what is told
	isCapped := func(capped bool) error {
		return tr.awaitAdmission(ctx, fmt.Sprintf("the policy is in force: %v", capped), newDeployment("probe", withReplicas(3)),
			func(d *appsv1.Deployment, err error) bool { return err == nil && (*d.Spec.Replicas == 1) == capped })
	}
	if err := errors.Join(tr.mutate(ctx, "/spec/replicas", "1"), isCapped(true)); err != nil {
		return err
	}
	tr.capped["a"] = 1
	err := errors.Join(tr.createFoo(ctx, "a", "a", 3), tr.judge(ctx, resyncs))
	if err == nil {
		err = errors.Join(tr.scaleFoo(ctx, "a", 2), tr.judge(ctx, resyncs))
	}
	if err != nil {
		return err
	}
	delete(tr.capped, "a")
	return errors.Join(tr.withdraw(ctx), isCapped(false), tr.scaleFoo(ctx, "a", 3), tr.stableAndQuiet(ctx))
}

func withReplicas(replicas int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas }
}

// mirroredImage has a policy put a mirror's name before the image. The shipped
// policy forbids that, for the account that it is about.
func mirroredImage(ctx context.Context, tr *trial) error {
	flags, resyncs := tr.resyncing()
	tr.patience = patience + resyncs
	if _, err := tr.startBare(flags...); err != nil {
		return err
	}
	const mirrored = "mirror.example.com/nginx:latest"
	image := func(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image }
	defer tr.withdraw(ctx) //nolint:errcheck // after a failure, which is what is told
	err := tr.mutate(ctx, "/spec/template/spec/containers/0/image", fmt.Sprintf("%q", mirrored))
	if err := errors.Join(err, tr.awaitAdmission(ctx, "the policy is in force", newDeployment("probe"),
		func(d *appsv1.Deployment, err error) bool { return err == nil && image(d) == mirrored })); err != nil {
		return err
	}
	tr.others = append(tr.others, other{deployment: "a", changed: func(d *appsv1.Deployment) error {
		if image(d) != mirrored {
			return fmt.Errorf("Deployment a has image %s, and not the mirror's", image(d))
		}
		return nil
	}})
	if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.judge(ctx, resyncs)); err != nil {
		return err
	}
	return errors.Join(tr.scaleFoo(ctx, "a", 3), tr.judge(ctx, resyncs))
}
