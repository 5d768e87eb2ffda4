// SPDX-License-Identifier: Apache-2.0

// Row D12: an admission policy refuses a Deployment. Also the checks of condition
// messages.

package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// maxAttempts is more than the attempts that an exponential back-off makes in some
// minutes if it starts with milliseconds.
const maxAttempts = 25

// denialText begins the policy's message.
const denialText = "Denied by the test"

// longMessage returns a CEL expression for a message of nearly 5 KiB, the limit for a
// policy's message. It has characters of more than one byte and differs for each
// Deployment.
func longMessage() string {
	return fmt.Sprintf("'%s: ' + string(object.metadata.uid) + ': ' + '%s'", denialText, strings.Repeat("no way – ", 445))
}

// refusedByPolicy is D12: a policy refuses a write that one of the Foos needs.
func refusedByPolicy(writeCounts) []trialCase {
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
		tr.timeout = 4 * waitTimeout // the back-off of a refused write grows to 5 minutes
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
		defer tr.withdraw(ctx) //nolint:errcheck // runs after a failure, and the test reports that one
		if err := tr.deny(ctx, "b", operation, longMessage()); err != nil {
			return err
		}
		if err := tr.awaitDenied(ctx, "b", operation); err != nil {
			return err
		}
		since := time.Now()
		tr.refused["b"] = samplev1alpha1.ReasonDeploymentFailed
		if err := errors.Join(ask(ctx, tr), tr.stableAndQuiet(ctx), tr.checkMessage(ctx, "b", denialText)); err != nil {
			return fmt.Errorf("while it is refused: %w", err)
		}
		if err := errors.Join(tr.scaleFoo(ctx, "a", 2), tr.createFoo(ctx, "c", "c", 1), tr.stableAndQuiet(ctx)); err != nil {
			return fmt.Errorf("while the write for another Foo is refused: %w", err)
		}
		if attempts := tr.deploymentWrites(since); attempts > maxAttempts {
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
		if err == nil || !strings.Contains(err.Error(), denialText) {
			return errors.Join(errors.New("it refuses no write yet"), err)
		}
		return nil
	})
}

// maxMessage bounds the message of a condition in bytes: kubectl prints it on one line.
const maxMessage = 1024

// checkMessage returns an error if the message of a Foo's condition lacks some words, or
// is too long.
func (tr *trial) checkMessage(ctx context.Context, foo string, words ...string) error {
	return tr.checkMessageStart(ctx, foo, "", words...)
}

// checkMessageStart is checkMessage for a message that must start with some words.
func (tr *trial) checkMessageStart(ctx context.Context, foo, beginning string, words ...string) error {
	if !tr.subject.conditions {
		return nil
	}
	found, err := tr.foosClient().Get(ctx, foo, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ready := meta.FindStatusCondition(found.Status.Conditions, samplev1alpha1.ConditionReady)
	if ready == nil || !strings.HasPrefix(ready.Message, beginning) {
		return fmt.Errorf("the condition of Foo %s does not start with %q: %+v", foo, beginning, ready)
	}
	if len(ready.Message) > maxMessage {
		return fmt.Errorf("the condition of Foo %s has a message of %d bytes", foo, len(ready.Message))
	}
	for _, word := range words {
		if !strings.Contains(ready.Message, word) {
			return fmt.Errorf("the condition of Foo %s does not contain %q: %+v", foo, word, ready)
		}
	}
	return nil
}

// deploymentWrites counts the requests to write Deployments.
func (tr *trial) deploymentWrites(since time.Time) int {
	writes := 0
	for _, call := range tr.calls() {
		if call.Began.After(since) && call.IsWrite() && call.Resource == "deployments" {
			writes++
		}
	}
	return writes
}
