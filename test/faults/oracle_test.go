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
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
)

// quiet is how long nothing may be written before a controller counts as
// silent. Whoever still has something to do does it within milliseconds, or
// after a back-off of at most this, unless it has failed often.
const quiet = 1500 * time.Millisecond

// stableAndQuiet is the oracle. Within a bounded time each live Foo has exactly
// one Deployment controlled by its UID, named and sized as its spec says, and
// its status tells of that; no Deployment is controlled by a dead Foo's UID;
// and then nothing is written. What belongs to others is as it was.
func (tr *trial) stableAndQuiet(ctx context.Context) error {
	return tr.judge(ctx, quiet)
}

// settled is the oracle before a fault: it need not look as long.
func (tr *trial) settled(ctx context.Context) error {
	return tr.judge(ctx, quiet/5)
}

func (tr *trial) judge(ctx context.Context, silence time.Duration) error {
	err := tr.await(ctx, "stable and quiet", func(ctx context.Context) error {
		before, err := tr.look(ctx)
		if err != nil {
			return err
		}
		if err := before.wrong(tr); err != nil {
			return err
		}
		return tr.silent(ctx, before, silence)
	})
	return errors.Join(err, tr.harm(ctx))
}

// world is what is in a trial's namespace.
type world struct {
	foos        []samplev1alpha1.Foo
	deployments []appsv1.Deployment
}

func (tr *trial) look(ctx context.Context) (*world, error) {
	foos, err := tr.foosClient().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	deployments, err := tr.deployments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return &world{foos.Items, deployments.Items}, nil
}

// wrong returns what is not as it has to be, or nil.
func (w *world) wrong(tr *trial) error {
	live := map[types.UID]bool{}
	for i := range w.foos {
		live[w.foos[i].UID] = true
		if err := w.wrongFoo(tr, &w.foos[i]); err != nil {
			return fmt.Errorf("Foo %s: %w", w.foos[i].Name, err)
		}
	}
	for i := range w.deployments {
		d := &w.deployments[i]
		if ref := metav1.GetControllerOf(d); ref != nil && ref.Kind == "Foo" && !live[ref.UID] && !tr.uncollected[d.Name] {
			return fmt.Errorf("Deployment %s is still there, but its Foo is gone", d.Name)
		}
	}
	return nil
}

func (w *world) wrongFoo(tr *trial, foo *samplev1alpha1.Foo) error {
	if foo.DeletionTimestamp != nil {
		return errors.New("it is still being deleted")
	}
	var named *appsv1.Deployment
	var controlled []*appsv1.Deployment
	var names []string
	for i := range w.deployments {
		d := &w.deployments[i]
		if d.Name == foo.Spec.DeploymentName {
			named = d
		}
		if metav1.IsControlledBy(d, foo) {
			controlled, names = append(controlled, d), append(names, d.Name)
		}
	}
	switch {
	case tr.refused[foo.Name] != "":
		return tr.wrongReason(foo, metav1.ConditionFalse, tr.refused[foo.Name])
	case named != nil && !metav1.IsControlledBy(named, foo):
		if len(controlled) > 0 {
			return fmt.Errorf("Deployment %s is not its own, and it controls %v", named.Name, names)
		}
		return tr.wrongReason(foo, metav1.ConditionFalse, samplev1alpha1.ReasonDeploymentConflict)
	case len(controlled) != 1 || controlled[0] != named:
		return fmt.Errorf("it asks for Deployment %s and controls %v", foo.Spec.DeploymentName, names)
	}
	if tr.mute {
		return tr.wrongDeployment(foo, named)
	}
	return errors.Join(tr.wrongDeployment(foo, named), tr.wrongStatus(foo, named))
}

// wrongDeployment tells what a Foo's Deployment lacks, its Pods included.
func (tr *trial) wrongDeployment(foo *samplev1alpha1.Foo, d *appsv1.Deployment) error {
	wanted := foo.Spec.Replicas
	if capped := tr.overruled[d.Name]; capped > 0 {
		wanted = &capped
	}
	if wanted != nil && *d.Spec.Replicas != *wanted {
		return fmt.Errorf("there should be %d replicas, Deployment %s has %d", *wanted, d.Name, *d.Spec.Replicas)
	}
	if status := d.Status; status.ObservedGeneration != d.Generation || status.AvailableReplicas != *d.Spec.Replicas || status.Replicas != *d.Spec.Replicas {
		return fmt.Errorf("Deployment %s is %w: %d of %d", d.Name, errNotRolledOut, status.AvailableReplicas, *d.Spec.Replicas)
	}
	return nil
}

func (tr *trial) wrongStatus(foo *samplev1alpha1.Foo, d *appsv1.Deployment) error {
	if foo.Status.AvailableReplicas != d.Status.AvailableReplicas {
		return fmt.Errorf("status.availableReplicas is %d, its Deployment's %d", foo.Status.AvailableReplicas, d.Status.AvailableReplicas)
	}
	if _, ok := tr.overruled[d.Name]; ok {
		return tr.wrongReason(foo, metav1.ConditionFalse, samplev1alpha1.ReasonDeploymentFailed)
	}
	return tr.wrongReason(foo, metav1.ConditionTrue, samplev1alpha1.ReasonAvailable)
}

// wrongReason compares the condition Ready, where the subject has conditions.
func (tr *trial) wrongReason(foo *samplev1alpha1.Foo, status metav1.ConditionStatus, reason string) error {
	if !tr.subject.conditions {
		return nil
	}
	if foo.Status.ObservedGeneration != foo.Generation {
		return fmt.Errorf("status.observedGeneration is %d, its generation %d", foo.Status.ObservedGeneration, foo.Generation)
	}
	ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady)
	if ready == nil || ready.Status != status || ready.Reason != reason || ready.ObservedGeneration != foo.Generation {
		return fmt.Errorf("condition Ready should be %s %s, and is %+v", status, reason, ready)
	}
	return nil
}

// silent waits, and returns an error if meanwhile a controller has written or
// an object has changed.
func (tr *trial) silent(ctx context.Context, before *world, silence time.Duration) error {
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
		if call.Began.After(since) && call.IsWrite() && !tr.overlooked(&call) {
			writes = append(writes, call.Short())
		}
	}
	if len(writes) > 0 {
		return fmt.Errorf("it is still writing: %d requests in %v, such as %s", len(writes), silence, writes[0])
	}
	after, err := tr.look(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(before.versions(), after.versions()) {
		return errors.New("objects still change")
	}
	return nil
}

// overlooked tells whether a write is no sign of unrest: the Lease's renewal,
// and what a subject writes at each resync.
func (tr *trial) overlooked(call *proxy.Call) bool {
	if call.Resource == "leases" {
		return true
	}
	return tr.subject.resyncs && (call.Resource == "events" || call.Subresource == "status" && call.Unchanged)
}

func (w *world) versions() []string {
	var versions []string
	for i := range w.foos {
		versions = append(versions, w.foos[i].Name+" "+w.foos[i].ResourceVersion)
	}
	for i := range w.deployments {
		versions = append(versions, w.deployments[i].Name+" "+w.deployments[i].ResourceVersion)
	}
	return versions
}
