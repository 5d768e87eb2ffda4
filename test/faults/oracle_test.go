// SPDX-License-Identifier: Apache-2.0

// The oracle that judges a trial: the Foos, their Deployments and their statuses are
// right, other writers' objects are unchanged, and nothing is written any more.

package faults

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
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
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/oracle"
	"example.com/sample-controller/test/testcluster"
)

// quiet is how long a controller must not write to count as quiet. A controller with work
// left writes within milliseconds, or after a back-off of at most this, unless it has
// failed often.
const quiet = 1500 * time.Millisecond

// expected is what the oracle takes into account, besides the specs of the Foos.
type expected struct {
	// protected check objects that the controller must leave as they are.
	protected []func() error
	// refused maps each Foo whose Deployment can't be written as the Foo asks to the
	// reason that its condition must have.
	refused map[string]string
	// mutated holds the Deployments that an admission policy changes, with the number of
	// replicas that the policy leaves, or 0 if it changes something else.
	mutated map[string]int32
	// statusUnwritable is true if the API server stores no correct status.
	statusUnwritable bool
}

func newExpected() expected {
	return expected{refused: map[string]string{}, mutated: map[string]int32{}}
}

// stableAndQuiet is the oracle. It checks that within a bounded time each live Foo
// controls exactly one Deployment by UID, named and sized as its spec says, and reports
// that in its status; that no Deployment is controlled by the UID of a deleted Foo; that
// after that nothing is written; and that other writers' objects are unchanged.
func (tr *trial) stableAndQuiet() { tr.quietFor(quiet) }

// settled is the oracle before a fault, with a shorter quiet time.
func (tr *trial) settled() { tr.quietFor(quiet / 5) }

// quietFor is the oracle, with another time in which nothing may be written.
func (tr *trial) quietFor(silence time.Duration) {
	err := tr.wait("the state is right and nothing is written", func(ctx context.Context) error {
		before, err := tr.takeSnapshot(ctx)
		if err != nil {
			return err
		}
		if err := before.check(tr); err != nil {
			return err
		}
		return tr.checkSilence(ctx, before, silence)
	})
	for _, check := range tr.expected.protected {
		err = errors.Join(err, check())
	}
	tr.must(err)
}

// snapshot holds the objects in a trial's namespace.
type snapshot struct {
	foos        []samplev1alpha1.Foo
	deployments []appsv1.Deployment
}

func (tr *trial) takeSnapshot(ctx context.Context) (*snapshot, error) {
	foos, foosErr := tr.foos().List(ctx, metav1.ListOptions{})
	deployments, deploymentsErr := tr.deployments().List(ctx, metav1.ListOptions{})
	if err := errors.Join(foosErr, deploymentsErr); err != nil {
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
		ref := metav1.GetControllerOf(d)
		// The garbage collector ignores owners of a version that the API server does not serve.
		isFoo := ref != nil && ref.Kind == "Foo" && ref.APIVersion == samplev1alpha1.SchemeGroupVersion.String()
		if isFoo && !live[ref.UID] {
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
	case tr.expected.refused[foo.Name] != "":
		return tr.checkReady(foo, metav1.ConditionFalse, tr.expected.refused[foo.Name])
	case named != nil && !metav1.IsControlledBy(named, foo):
		if len(controlled) > 0 {
			return fmt.Errorf("Deployment %s is not its own, but it controls %v", named.Name, names)
		}
		if ref := metav1.GetControllerOf(named); ref != nil && ref.Name == foo.Name && ref.Kind == "Foo" && strings.HasPrefix(ref.APIVersion, samplev1alpha1.GroupName+"/") {
			// Of an earlier Foo: no conflict yet, because the garbage collector may delete it.
			return tr.checkReady(foo, metav1.ConditionFalse, samplev1alpha1.ReasonProgressing)
		}
		return tr.checkReady(foo, metav1.ConditionFalse, samplev1alpha1.ReasonDeploymentConflict)
	case len(controlled) != 1 || controlled[0] != named:
		return fmt.Errorf("it wants Deployment %s but controls %v", foo.Spec.DeploymentName, names)
	}
	if tr.expected.statusUnwritable {
		return tr.checkDeployment(foo, named)
	}
	return errors.Join(tr.checkDeployment(foo, named), tr.checkStatus(foo, named))
}

// checkDeployment checks the size of a Foo's Deployment and its Pods.
func (tr *trial) checkDeployment(foo *samplev1alpha1.Foo, d *appsv1.Deployment) error {
	wanted := foo.Spec.Replicas
	if capped := tr.expected.mutated[d.Name]; capped > 0 {
		wanted = &capped
	}
	if wanted != nil && *d.Spec.Replicas != *wanted {
		return fmt.Errorf("it wants %d replicas, but Deployment %s has %d", *wanted, d.Name, *d.Spec.Replicas)
	}
	asked, status := *d.Spec.Replicas, d.Status
	if status.ObservedGeneration != d.Generation || status.AvailableReplicas != asked || status.Replicas != asked {
		return fmt.Errorf("Deployment %s is %w: %d of %d", d.Name, errNotRolledOut, status.AvailableReplicas, asked)
	}
	return nil
}

func (tr *trial) checkStatus(foo *samplev1alpha1.Foo, d *appsv1.Deployment) error {
	if reported, available := foo.Status.AvailableReplicas, d.Status.AvailableReplicas; reported != available {
		return fmt.Errorf("status.availableReplicas is %d, but its Deployment's is %d", reported, available)
	}
	if _, ok := tr.expected.mutated[d.Name]; ok {
		return tr.checkReady(foo, metav1.ConditionFalse, samplev1alpha1.ReasonDeploymentFailed)
	}
	return tr.checkReady(foo, metav1.ConditionTrue, samplev1alpha1.ReasonAvailable)
}

// checkReady compares the condition Ready, if the subject reports conditions.
func (tr *trial) checkReady(foo *samplev1alpha1.Foo, status metav1.ConditionStatus, reason string) error {
	if tr.subject.isUpstream {
		return nil
	}
	if foo.Status.ObservedGeneration != foo.Generation {
		return fmt.Errorf("status.observedGeneration is %d, want %d", foo.Status.ObservedGeneration, foo.Generation)
	}
	ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady)
	if ready == nil || ready.Status != status || ready.Reason != reason || ready.ObservedGeneration != foo.Generation {
		return fmt.Errorf("want condition Ready %s with reason %s, got %+v", status, reason, ready)
	}
	return nil
}

// maxMessage bounds the message of a condition in bytes: kubectl prints it on one line.
const maxMessage = 1024

// checkMessage returns an error if the message of a Foo's condition does not start with some
// words, lacks others, or is too long.
func (tr *trial) checkMessage(ctx context.Context, foo, beginning string, words ...string) error {
	if tr.subject.isUpstream {
		return nil
	}
	found, err := tr.foos().Get(ctx, foo, metav1.GetOptions{})
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

// mustSay fails unless the message of a Foo's condition contains some words.
func (tr *trial) mustSay(foo string, words ...string) {
	tr.must(tr.checkMessage(tr.ctx, foo, "", words...))
}

// soon bounds how long a Foo may take to report what someone has to know. A denial that
// looks like a lost race is reported after the tenth, some three seconds later.
const soon = 15 * time.Second

// awaitReported waits until a Foo is as it should be and its condition contains some
// words, whatever the state of others.
func (tr *trial) awaitReported(foo string, words ...string) {
	if tr.subject.isUpstream {
		return
	}
	tr.must(testcluster.Await(tr.ctx, soon, "Foo "+foo+" reports it", func(ctx context.Context) error {
		found, err := tr.foos().Get(ctx, foo, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return errors.Join(tr.checkReady(found, metav1.ConditionFalse, tr.expected.refused[foo]),
			tr.checkMessage(ctx, foo, "", words...))
	}))
}

// checkSilence waits, and returns an error if a controller wrote or an object changed
// meanwhile.
func (tr *trial) checkSilence(ctx context.Context, before *snapshot, silence time.Duration) error {
	began := time.Now()
	if err := sleep(ctx, silence); err != nil {
		return err
	}
	writes := tr.made(since(began), isWrite, func(call *proxy.Call) bool { return !tr.isIgnored(call) })
	if len(writes) > 0 {
		return fmt.Errorf("it is still writing: %d requests in %v, such as %s", len(writes), silence, writes[0].Short())
	}
	after, err := tr.takeSnapshot(ctx)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(before, after) {
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
	return tr.subject.isUpstream && (call.Resource == "events" || call.Subresource == "status" && call.Unchanged)
}

// protectThat makes the oracle check a Deployment that the controller must leave as it is.
func (tr *trial) protectThat(name string, check func(*appsv1.Deployment) error) {
	tr.expected.protected = append(tr.expected.protected, func() error {
		d, err := tr.deployments().Get(tr.ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("Deployment %s, which it must not change, is gone", name)
		}
		if err != nil {
			return err
		}
		return check(d)
	})
}

// protect makes the oracle check that a Deployment stays as it is, except for its status.
func (tr *trial) protect(before *appsv1.Deployment) {
	tr.protectThat(before.Name, func(now *appsv1.Deployment) error {
		if now.UID != before.UID || now.Generation != before.Generation || now.DeletionTimestamp != nil ||
			!equality.Semantic.DeepEqual(now.Spec, before.Spec) ||
			!equality.Semantic.DeepEqual(now.OwnerReferences, before.OwnerReferences) {
			return fmt.Errorf("Deployment %s, which it must not change, was changed\n%s%s", now.Name,
				diff.Diff(before.OwnerReferences, now.OwnerReferences), diff.Diff(before.Spec, now.Spec))
		}
		return nil
	})
}

// protectAnnotations makes the oracle check that annotations stay on a Deployment.
func (tr *trial) protectAnnotations(deployment string, annotations map[string]string) {
	tr.protectThat(deployment, func(now *appsv1.Deployment) error {
		for key, value := range annotations {
			if now.Annotations[key] != value {
				return fmt.Errorf("annotation %s that another writer set on Deployment %s is gone", key, deployment)
			}
		}
		return nil
	})
}

// startRecording begins to record every status of the Foos in the trial's namespace: the
// second oracle. It watches the API server directly, not through the proxy. Only subjects
// that report conditions have a recording.
func (tr *trial) startRecording() (err error) {
	if !tr.subject.isUpstream {
		tr.recording, err = oracle.Record(tr.ctx, tr.cluster.kube, tr.cluster.foos, tr.ns)
	}
	return err
}

// endRecording ends the recording and keeps the false statuses in it. A gap in the
// recording is an error, because a false status may have been missed.
func (tr *trial) endRecording() {
	if tr.recording == nil {
		return
	}
	ctx, cancel := context.WithTimeout(tr.ctx, waitTimeout)
	defer cancel()
	sentences, err := tr.recording.Lies(ctx)
	if err != nil {
		tr.falsehoods = append(tr.falsehoods, fmt.Errorf("the record of the statuses is incomplete: %w", err))
	}
	for _, sentence := range sentences {
		tr.falsehoods = append(tr.falsehoods, errors.New(sentence))
	}
	tr.recording.Stop()
	tr.recording = nil
}

// withoutRecording runs do, which ends all watches, between two recordings. What was
// recorded before is checked first.
func (tr *trial) withoutRecording(do func()) {
	tr.endRecording()
	do()
	tr.must(tr.startRecording())
}

// mustServe fails if a Foo that had been ready had no Deployment with available Pods at some
// time.
func (tr *trial) mustServe() {
	if tr.subject.isUpstream {
		return
	}
	interruptions, err := tr.recording.Interruptions(tr.ctx, func(child footest.Object) bool {
		d, ok := child.(*appsv1.Deployment)
		return ok && d.Status.AvailableReplicas > 0
	})
	tr.must(err)
	if len(interruptions) > 0 {
		tr.failf("%s", strings.Join(interruptions, "; "))
	}
}
