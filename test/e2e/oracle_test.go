// SPDX-License-Identifier: Apache-2.0

// The oracle that judges a trial: the Foos, their Deployments and their statuses are
// right, other writers' objects are unchanged, and nothing is written any more.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/oracle"
	"example.com/sample-controller/test/testcluster"
)

// quiet is how long a controller that can't answer a fence must not write to count as quiet. One with work
// left writes within milliseconds, or after a back-off of at most this, unless it has failed often.
const quiet = 1500 * time.Millisecond

// expected is what the oracle takes into account, besides the specs of the Foos.
type expected struct {
	// protected check objects that the controller must leave as they are.
	protected []func() error
	// refused maps each Foo whose Deployment can't be as the Foo asks, because someone refuses or changes
	// its writes, to the reason that its condition must have.
	refused map[string]string
	// statusUnwritable is true if the API server stores no correct status.
	statusUnwritable bool
}

func newExpected() expected { return expected{refused: map[string]string{}} }

// stableAndQuiet is the oracle. It checks that within a bounded time everything is as the rules of
// pkg/reconcile/reconciletest say of a world at rest, the children are ready, and the status reports
// that; that after that nothing is written; and that other writers' objects are unchanged.
func (tr *trial) stableAndQuiet() {
	tr.t.Helper()
	tr.quietFor(0)
}

// quietFor is the oracle, with a time in which nothing may be written.
func (tr *trial) quietFor(silence time.Duration) {
	tr.t.Helper()
	err := tr.wait("the state is right and nothing is written", func(ctx context.Context) error {
		before, err := tr.takeSnapshot(ctx)
		if err != nil {
			return err
		}
		if err := tr.check(before); err != nil {
			return err
		}
		return tr.checkSilence(ctx, before, silence)
	})
	for _, check := range tr.expected.protected {
		err = errors.Join(err, check())
	}
	tr.must(err)
}

// fence is the name of the Foo by which the tests learn that the controller has handled all that happened before.
const fence = "fence"

// handleAll waits until the controller has had the chance to do what it must not. It asks for nothing but a
// status of a Foo of its own, which is suspended and queued behind what happened before. A controller that can't answer
// gets a time instead.
func (tr *trial) handleAll(ctx context.Context) error {
	if tr.subject.isUpstream || tr.expected.statusUnwritable || len(tr.replicas) == 0 {
		return sleep(ctx, quiet)
	}
	child := fence + strconv.FormatInt(time.Now().UnixNano(), 10) // another one each time
	foo, err := tr.foos().Patch(ctx, fence, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"deploymentName":%q}}`, child), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		foo = newFoo(fence, child, 0)
		footest.Suspended(foo)
		foo, err = tr.foos().Create(ctx, foo, metav1.CreateOptions{})
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return sleep(ctx, quiet)
	case err != nil:
		return err
	}
	return testcluster.Await(ctx, tr.timeout/2, "the controller has handled everything", func(ctx context.Context) error {
		now, err := tr.foos().Get(ctx, fence, metav1.GetOptions{})
		if err == nil && now.Status.ObservedGeneration < foo.Generation {
			err = fmt.Errorf("it has not handled generation %d of Foo %s: %+v", foo.Generation, fence, now.Status)
		}
		return err
	})
}

// letAct is handleAll for what follows an act.
func (tr *trial) letAct() {
	tr.t.Helper()
	tr.must(tr.handleAll(tr.ctx))
}

func (tr *trial) api() oracle.API {
	return oracle.API{Kube: tr.cluster.kube, Foos: tr.cluster.foos, Namespace: tr.ns}
}

// takeSnapshot returns what there is in the trial's namespace of each kind of the program, without fence.
func (tr *trial) takeSnapshot(ctx context.Context) (worlds []rules.World, err error) {
	for _, owner := range footest.Owners {
		objects, err := tr.api().All(ctx, owner)
		if err != nil {
			return nil, err
		}
		objects = slices.DeleteFunc(objects, func(object footest.Object) bool { return object.GetName() == fence })
		worlds = append(worlds, rules.World{Owner: owner, Objects: objects})
	}
	return worlds, nil
}

// check returns the first deviation from what must be, or nil.
func (tr *trial) check(worlds []rules.World) error {
	for _, w := range worlds {
		for _, object := range w.Objects {
			if w.Owner.Is(object) {
				if err := tr.checkOwner(w, object); err != nil {
					return fmt.Errorf("%s %s: %w", w.Owner, object.GetName(), err)
				}
				continue
			}
			// The garbage collector ignores owners of a version that the API server does not serve.
			ref := metav1.GetControllerOf(object)
			if ref != nil && w.Owner.IsOwned(ref) && ref.APIVersion == w.Owner.Resource.GroupVersion().String() && w.OwnerOf(object) == nil {
				return fmt.Errorf("%s %s still exists, but its owner is deleted", w.Owner.KindOf(object), object.GetName())
			}
		}
	}
	return nil
}

func (tr *trial) checkOwner(w rules.World, foo footest.Object) error {
	if foo.GetDeletionTimestamp() != nil {
		return errors.New("it is still being deleted")
	}
	if reason := tr.expected.refused[foo.GetName()]; reason != "" {
		return tr.checkReady(foo, metav1.ConditionFalse, reason)
	}
	reason, _, misreported, wrong := w.Due(foo)
	switch {
	case wrong != "":
		return errors.New("it " + wrong)
	case reason == plan.ReasonProgressing:
		return fmt.Errorf("its children are %w", errNotRolledOut)
	case reason == plan.ReasonTerminating:
		return errors.New("a child of it is still being deleted")
	case reason != "" && tr.isOfEarlier(w, foo):
		// No conflict yet, because the garbage collector may delete it.
		return tr.checkReady(foo, metav1.ConditionFalse, plan.ReasonProgressing)
	case reason != "":
		return tr.checkReady(foo, metav1.ConditionFalse, reason)
	case tr.expected.statusUnwritable:
		return nil
	case tr.subject.isUpstream:
		return availableMisreported(w, foo)
	case misreported != "":
		return errors.New("it " + misreported)
	}
	return tr.checkReady(foo, metav1.ConditionTrue, plan.ReasonAvailable)
}

// isOfEarlier reports whether a child that an owner asks for belongs to an earlier owner of its name.
func (tr *trial) isOfEarlier(w rules.World, foo footest.Object) bool {
	return slices.ContainsFunc(w.Owner.Kinds, func(kind *footest.Kind) bool {
		child := kind.Find(w.Objects, kind.Name(foo))
		ref := (*metav1.OwnerReference)(nil)
		if child != nil {
			ref = metav1.GetControllerOf(child)
		}
		return ref != nil && ref.Name == foo.GetName() && ref.UID != foo.GetUID() && w.Owner.IsOwned(ref)
	})
}

// availableMisreported checks all that upstream's controller reports.
func availableMisreported(w rules.World, object footest.Object) error {
	foo, isFoo := object.(*samplev1alpha1.Foo)
	d, hasOne := footest.Primary.Find(w.Objects, footest.Primary.Name(object)).(*appsv1.Deployment)
	if isFoo && hasOne && foo.Status.AvailableReplicas != d.Status.AvailableReplicas {
		return fmt.Errorf("status.availableReplicas is %d, but its Deployment's is %d", foo.Status.AvailableReplicas, d.Status.AvailableReplicas)
	}
	return nil
}

// checkReady compares the condition Ready for the newest spec, if the subject reports conditions.
func (tr *trial) checkReady(foo footest.Object, status metav1.ConditionStatus, reason string) error {
	if tr.subject.isUpstream {
		return nil
	}
	ready, generation := rows.ConditionOf(foo), foo.GetGeneration()
	if observed := rows.ObservedGenerationOf(foo); observed != generation {
		return fmt.Errorf("status.observedGeneration is %d, want %d", observed, generation)
	}
	if ready == nil || ready.Status != status || ready.Reason != reason || ready.ObservedGeneration != generation {
		return fmt.Errorf("want condition Ready %s with reason %s, got %+v", status, reason, ready)
	}
	return nil
}

// awaitReady waits until some Foos are as they ask, and report that, whatever the state of
// others.
func (tr *trial) awaitReady(foos ...string) {
	tr.t.Helper()
	tr.await(fmt.Sprintf("the Foos %v have converged", foos), func(ctx context.Context) error {
		worlds, err := tr.takeSnapshot(ctx)
		for _, w := range worlds {
			for _, object := range w.Objects {
				if w.Owner.Is(object) && slices.Contains(foos, object.GetName()) {
					err = errors.Join(err, tr.checkOwner(w, object))
					if !tr.expected.statusUnwritable {
						err = errors.Join(err, tr.checkReady(object, metav1.ConditionTrue, plan.ReasonAvailable))
					}
				}
			}
		}
		return err
	})
}

// awaitReason waits until a Foo reports that it is not ready, with a reason and a message that contains some words,
// and returns the message.
func (tr *trial) awaitReason(foo, reason string, words ...string) (message string) {
	tr.t.Helper()
	if tr.subject.isUpstream {
		return ""
	}
	tr.await(fmt.Sprintf("Foo %s reports %s: %q", foo, reason, words), func(ctx context.Context) error {
		found, err := tr.foos().Get(ctx, foo, metav1.GetOptions{})
		if err != nil {
			return err
		}
		message = footest.ReadyOf(found.Status).Message
		return errors.Join(tr.checkReady(found, metav1.ConditionFalse, reason), tr.checkMessage(ctx, foo, "", words...))
	})
	return message
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

// awaitReported waits until a Foo reports the expected reason, and its condition contains some
// words, whatever the state of others.
func (tr *trial) awaitReported(foo string, words ...string) {
	tr.t.Helper()
	within := *tr
	within.timeout = soon
	within.awaitReason(foo, tr.expected.refused[foo], words...)
}

// checkSilence returns an error if a controller writes, or an object changes, until it has handled all that
// happened before, and for a time.
func (tr *trial) checkSilence(ctx context.Context, before []rules.World, silence time.Duration) error {
	began := time.Now()
	if err := errors.Join(tr.handleAll(ctx), sleep(ctx, silence)); err != nil {
		return err
	}
	writes := tr.made(since(began), isWrite, func(call *proxy.Call) bool { return !tr.isIgnored(call) })
	if len(writes) > 0 {
		return fmt.Errorf("it is still writing: %d requests in %v, such as %s", len(writes), time.Since(began).Round(time.Second), writes[0].Short())
	}
	after, err := tr.takeSnapshot(ctx)
	if err != nil {
		return err
	}
	for i := range before {
		if !reflect.DeepEqual(before[i].Objects, after[i].Objects) {
			return errors.New("objects still change")
		}
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
