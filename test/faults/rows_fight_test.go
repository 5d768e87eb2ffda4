// SPDX-License-Identifier: Apache-2.0
// Row G13: somebody changes a Deployment back after each repair.

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
)

const (
	// fightTime is how long the opponent goes on.
	fightTime = 20 * time.Second
	// maxRepairs bounds the repairs meanwhile: some at once, the rest with pauses that double.
	maxRepairs = 10
)

// changedBack is G13: an opponent sets the replicas back as soon as they are repaired.
func changedBack(writeCounts) []trialCase {
	return []trialCase{{"the replicas", func(ctx context.Context, tr *trial) error {
		r, err := tr.start()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
			return err
		}
		since := time.Now()
		if err := tr.oppose(ctx, "a", 3); err != nil {
			return err
		}
		if err := errors.Join(r.checkFight(since), tr.checkStalled(ctx, "a", "somebody")); err != nil {
			return err
		}
		tr.timeout = 2 * waitTimeout // the next repair has to last a minute
		return tr.stableAndQuiet(ctx)
	}}}
}

// oppose sets the replicas of a Deployment again and again, each time as soon as they
// differ.
func (tr *trial) oppose(ctx context.Context, deployment string, replicas int32) error {
	during, cancel := context.WithTimeout(ctx, fightTime)
	defer cancel()
	watcher, err := tr.deployments().Watch(during, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, deployment).String()})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if d, ok := event.Object.(*appsv1.Deployment); ok && *d.Spec.Replicas != replicas {
			if err := tr.patchDeployment(ctx, deployment, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// checkFight returns an error if a controller repaired a Deployment too often, or reported
// that more than once.
func (r *replica) checkFight(since time.Time) error {
	repairs, warnings := 0, 0
	for _, call := range r.proxy.Calls() {
		switch {
		case call.Began.Before(since):
		case isUpdate(call):
			repairs++
		case isWarning(&call):
			warnings++
		}
	}
	if repairs > maxRepairs || warnings > 1 {
		return fmt.Errorf("somebody changed the Deployment back for %v: there were %d repairs and %d Warnings", fightTime, repairs, warnings)
	}
	return nil
}

// isWarning reports whether a request wrote an Event of the type Warning.
func isWarning(call *proxy.Call) bool {
	return call.IsWrite() && call.Resource == "events" && bytes.Contains(call.Answer, []byte(`"type":"`+corev1.EventTypeWarning+`"`))
}

// checkStalled returns an error if a Foo does not report that it needs somebody else, and
// in whose name.
func (tr *trial) checkStalled(ctx context.Context, foo, manager string) error {
	if !tr.subject.conditions {
		return nil
	}
	found, err := tr.foosClient().Get(ctx, foo, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(found.Status.Conditions, "Stalled") {
		return fmt.Errorf("Foo %s is not stalled: %+v", foo, found.Status.Conditions)
	}
	return errors.Join(tr.checkReady(found, metav1.ConditionFalse, samplev1alpha1.ReasonDeploymentFailed),
		tr.checkMessage(ctx, foo, fmt.Sprintf("is changed back after each repair, last by %q", manager)))
}

// twoImages is G13: two controllers with different images have the same Foo. Each takes
// the other for somebody who undoes its repairs.
func twoImages(writeCounts) []trialCase {
	return []trialCase{{"for a while", func(ctx context.Context, tr *trial) error {
		r, err := tr.startExempt()
		if err != nil {
			return err
		}
		if err := errors.Join(tr.createFoo(ctx, "a", "a", 1), tr.settled(ctx)); err != nil {
			return err
		}
		since := time.Now()
		other, err := tr.startExempt("-image=nginx:other")
		if err != nil {
			return err
		}
		pause(ctx, fightTime)
		if err := errors.Join(r.checkFight(since), other.checkFight(since), tr.checkStalled(ctx, "a", "sample-controller")); err != nil {
			return err
		}
		if writes := r.proxy.Writes() + other.proxy.Writes(); writes > 6*maxRepairs {
			return fmt.Errorf("two controllers made %d writes for one Foo", writes)
		}
		other.process.close()
		tr.timeout = 2 * waitTimeout // the next repair has to last a minute
		return tr.stableAndQuiet(ctx)
	}}}
}
