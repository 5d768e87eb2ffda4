// SPDX-License-Identifier: Apache-2.0

// The oracle that judges a trial: the Foos, their Deployments and their statuses are
// right, other writers' objects are unchanged, and nothing is written any more.

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/oracle"
)

// quiet is how long a controller must not write to count as quiet. A controller with work
// left writes within milliseconds, or after a back-off of at most this, unless it has
// failed often.
const quiet = 1500 * time.Millisecond

// stableAndQuiet is the oracle. It checks that within a bounded time each live Foo
// controls exactly one Deployment by UID, named and sized as its spec says, and reports
// that in its status; that no Deployment is controlled by the UID of a deleted Foo; that
// after that nothing is written; and that other writers' objects are unchanged.
func (tr *trial) stableAndQuiet(ctx context.Context) error {
	return tr.judge(ctx, quiet)
}

// settled is the oracle before a fault, with a shorter quiet time.
func (tr *trial) settled(ctx context.Context) error {
	return tr.judge(ctx, quiet/5)
}

func (tr *trial) judge(ctx context.Context, silence time.Duration) error {
	err := tr.await(ctx, "the state is right and nothing is written", func(ctx context.Context) error {
		before, err := tr.takeSnapshot(ctx)
		if err != nil {
			return err
		}
		if err := before.check(tr); err != nil {
			return err
		}
		return tr.checkSilence(ctx, before, silence)
	})
	return errors.Join(err, tr.checkProtected(ctx))
}

// snapshot holds the objects in a trial's namespace.
type snapshot struct {
	foos        []samplev1alpha1.Foo
	deployments []appsv1.Deployment
}

func (tr *trial) takeSnapshot(ctx context.Context) (*snapshot, error) {
	foos, err := tr.foosClient().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	deployments, err := tr.deployments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return &snapshot{foos.Items, deployments.Items}, nil
}

// check returns the first deviation from what must be, or nil.
func (s *snapshot) check(tr *trial) error {
	live := map[types.UID]bool{}
	for i := range s.foos {
		live[s.foos[i].UID] = true
		if err := s.checkFoo(tr, &s.foos[i]); err != nil {
			return fmt.Errorf("Foo %s: %w", s.foos[i].Name, err)
		}
	}
	for i := range s.deployments {
		d := &s.deployments[i]
		if ref := metav1.GetControllerOf(d); ref != nil && ref.Kind == "Foo" && !live[ref.UID] && !tr.uncollected[d.Name] {
			return fmt.Errorf("Deployment %s still exists, but its Foo is deleted", d.Name)
		}
	}
	return nil
}

func (s *snapshot) checkFoo(tr *trial, foo *samplev1alpha1.Foo) error {
	if foo.DeletionTimestamp != nil {
		return errors.New("it is still being deleted")
	}
	var named *appsv1.Deployment
	var controlled []*appsv1.Deployment
	var names []string
	for i := range s.deployments {
		d := &s.deployments[i]
		if d.Name == foo.Spec.DeploymentName {
			named = d
		}
		if metav1.IsControlledBy(d, foo) {
			controlled, names = append(controlled, d), append(names, d.Name)
		}
	}
	switch {
	case tr.refused[foo.Name] != "":
		return tr.checkReady(foo, metav1.ConditionFalse, tr.refused[foo.Name])
	case named != nil && !metav1.IsControlledBy(named, foo):
		if len(controlled) > 0 {
			return fmt.Errorf("Deployment %s is not its own, and it controls %v", named.Name, names)
		}
		return tr.checkReady(foo, metav1.ConditionFalse, samplev1alpha1.ReasonDeploymentConflict)
	case len(controlled) != 1 || controlled[0] != named:
		return fmt.Errorf("it asks for Deployment %s and controls %v", foo.Spec.DeploymentName, names)
	}
	if tr.statusUnwritable {
		return tr.checkDeployment(foo, named)
	}
	return errors.Join(tr.checkDeployment(foo, named), tr.checkStatus(foo, named))
}

// checkDeployment checks the size of a Foo's Deployment and its Pods.
func (tr *trial) checkDeployment(foo *samplev1alpha1.Foo, d *appsv1.Deployment) error {
	wanted := foo.Spec.Replicas
	if capped := tr.mutated[d.Name]; capped > 0 {
		wanted = &capped
	}
	if wanted != nil && *d.Spec.Replicas != *wanted {
		return fmt.Errorf("want %d replicas, and Deployment %s has %d", *wanted, d.Name, *d.Spec.Replicas)
	}
	if status := d.Status; status.ObservedGeneration != d.Generation || status.AvailableReplicas != *d.Spec.Replicas || status.Replicas != *d.Spec.Replicas {
		return fmt.Errorf("Deployment %s is %w: %d of %d", d.Name, errNotRolledOut, status.AvailableReplicas, *d.Spec.Replicas)
	}
	return nil
}

func (tr *trial) checkStatus(foo *samplev1alpha1.Foo, d *appsv1.Deployment) error {
	if foo.Status.AvailableReplicas != d.Status.AvailableReplicas {
		return fmt.Errorf("status.availableReplicas is %d, and its Deployment's is %d", foo.Status.AvailableReplicas, d.Status.AvailableReplicas)
	}
	if _, ok := tr.mutated[d.Name]; ok {
		return tr.checkReady(foo, metav1.ConditionFalse, samplev1alpha1.ReasonDeploymentFailed)
	}
	return tr.checkReady(foo, metav1.ConditionTrue, samplev1alpha1.ReasonAvailable)
}

// checkReady compares the condition Ready, if the subject reports conditions.
func (tr *trial) checkReady(foo *samplev1alpha1.Foo, status metav1.ConditionStatus, reason string) error {
	if !tr.subject.conditions {
		return nil
	}
	if foo.Status.ObservedGeneration != foo.Generation {
		return fmt.Errorf("status.observedGeneration is %d, and the generation is %d", foo.Status.ObservedGeneration, foo.Generation)
	}
	ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady)
	if ready == nil || ready.Status != status || ready.Reason != reason || ready.ObservedGeneration != foo.Generation {
		return fmt.Errorf("want condition Ready %s with reason %s, and it is %+v", status, reason, ready)
	}
	return nil
}

// checkSilence waits, and returns an error if a controller wrote or an object changed
// meanwhile.
func (tr *trial) checkSilence(ctx context.Context, before *snapshot, silence time.Duration) error {
	since := time.Now()
	timer := time.NewTimer(silence)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	var writes []string
	for _, call := range tr.calls() {
		if call.Began.After(since) && call.IsWrite() && !tr.isIgnored(&call) {
			writes = append(writes, call.Short())
		}
	}
	if len(writes) > 0 {
		return fmt.Errorf("it is still writing: %d requests in %v, such as %s", len(writes), silence, writes[0])
	}
	after, err := tr.takeSnapshot(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(before.versions(), after.versions()) {
		return errors.New("objects still change")
	}
	return nil
}

// isIgnored reports whether a write does not count as activity: the renewal of a Lease,
// and what a subject writes at each resync.
func (tr *trial) isIgnored(call *proxy.Call) bool {
	if call.Resource == "leases" {
		return true
	}
	return tr.subject.resyncs && (call.Resource == "events" || call.Subresource == "status" && call.Unchanged)
}

func (s *snapshot) versions() []string {
	var versions []string
	for i := range s.foos {
		versions = append(versions, s.foos[i].Name+" "+s.foos[i].ResourceVersion)
	}
	for i := range s.deployments {
		versions = append(versions, s.deployments[i].Name+" "+s.deployments[i].ResourceVersion)
	}
	return versions
}

// protected is a Deployment, or a part of one, that the controller must leave as it is.
type protected struct {
	deployment string
	// changed returns an error that says what differs, or nil.
	changed func(*appsv1.Deployment) error
}

// checkProtected returns an error if a protected object has changed.
func (tr *trial) checkProtected(ctx context.Context) error {
	var errs []error
	for _, o := range tr.protected {
		d, err := tr.deployments().Get(ctx, o.deployment, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("Deployment %s, which belongs to others, is gone", o.deployment))
		case err != nil:
			errs = append(errs, err)
		default:
			errs = append(errs, o.changed(d))
		}
	}
	return errors.Join(errs...)
}

// protect makes the oracle check that a Deployment stays as it is, except for its status.
func (tr *trial) protect(before *appsv1.Deployment) {
	tr.protected = append(tr.protected, protected{deployment: before.Name, changed: func(now *appsv1.Deployment) error {
		if now.UID != before.UID || now.Generation != before.Generation || !equality.Semantic.DeepEqual(now.Spec, before.Spec) ||
			!equality.Semantic.DeepEqual(now.OwnerReferences, before.OwnerReferences) || now.DeletionTimestamp != nil {
			return fmt.Errorf("Deployment %s, which belongs to others, has been changed: %s%s", now.Name,
				diff.Diff(before.OwnerReferences, now.OwnerReferences), diff.Diff(before.Spec, now.Spec))
		}
		return nil
	}})
}

// protectAnnotation makes the oracle check that an annotation stays on a Deployment.
func (tr *trial) protectAnnotation(deployment, key, value string) {
	tr.protected = append(tr.protected, protected{deployment: deployment, changed: func(now *appsv1.Deployment) error {
		if now.Annotations[key] != value {
			return fmt.Errorf("annotation %s=%s, which somebody else put on Deployment %s, is gone", key, value, deployment)
		}
		return nil
	}})
}

// statusRecord records every status of the Foos in a trial's namespace: the second
// oracle. It watches the API server directly, not through the proxy. Only subjects that
// report conditions have one.
type statusRecord struct {
	mu        sync.Mutex
	recording *oracle.Recording
	// found holds the false statuses of recordings that have ended, and the errors of
	// recording.
	found []error
}

// startRecording begins a recording.
func (tr *trial) startRecording(ctx context.Context) error {
	if !tr.subject.conditions {
		return nil
	}
	recording, err := oracle.Record(ctx, tr.cluster.kube, tr.cluster.foos, tr.ns)
	if err != nil {
		return err
	}
	tr.statuses.mu.Lock()
	defer tr.statuses.mu.Unlock()
	tr.statuses.recording = recording
	return nil
}

// endRecording ends the recording and keeps the false statuses in it. A gap in the
// recording is an error, because a false status may have been missed.
func (tr *trial) endRecording(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errTimeout)
	defer cancel()
	tr.statuses.mu.Lock()
	defer tr.statuses.mu.Unlock()
	if tr.statuses.recording == nil {
		return
	}
	falseStatuses, err := tr.statuses.recording.Lies(ctx)
	if err != nil {
		tr.statuses.found = append(tr.statuses.found, fmt.Errorf("the record of the statuses is incomplete: %w", err))
	}
	for _, sentence := range falseStatuses {
		tr.statuses.found = append(tr.statuses.found, errors.New(sentence))
	}
	tr.statuses.recording.Stop()
	tr.statuses.recording = nil
}

// withoutRecording runs do, which ends all watches, between two recordings. What was
// recorded before is checked first.
func (tr *trial) withoutRecording(ctx context.Context, do func() error) error {
	tr.endRecording(ctx)
	err := do()
	if recordErr := tr.startRecording(ctx); recordErr != nil {
		tr.statuses.mu.Lock()
		defer tr.statuses.mu.Unlock()
		tr.statuses.found = append(tr.statuses.found, recordErr)
	}
	return err
}

// falseStatuses ends the recording, and returns the statuses in all recordings that were
// false.
func (tr *trial) falseStatuses(ctx context.Context) error {
	tr.endRecording(ctx)
	tr.statuses.mu.Lock()
	defer tr.statuses.mu.Unlock()
	return errors.Join(tr.statuses.found...)
}

// stopRecording ends the recording without checking it.
func (tr *trial) stopRecording() {
	tr.statuses.mu.Lock()
	defer tr.statuses.mu.Unlock()
	if tr.statuses.recording != nil {
		tr.statuses.recording.Stop()
	}
}
