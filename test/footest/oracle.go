// SPDX-License-Identifier: Apache-2.0

// The oracle of the fuzz targets: what is right, without any code of the controller.

package footest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// These checks define what is right independently: they call no code of the controller.

// BelongsTo reports whether a Foo controls an object.
func BelongsTo(object metav1.Object, foo Object) bool {
	ref := metav1.GetControllerOf(object)
	return ref != nil && OwnerOf(foo).IsOwned(ref) && ref.UID == foo.GetUID()
}

// HandedOverTo reports whether an object has no controller and asks to be adopted by the
// Foo.
func HandedOverTo(object metav1.Object, foo Object) bool {
	return metav1.GetControllerOf(object) == nil && object.GetDeletionTimestamp() == nil &&
		object.GetAnnotations()["samplecontroller.k8s.io/adopt-by"] == foo.GetName()
}

// CheckOthersKept fails if a write changes a field that the Foo does not own.
func CheckOthersKept(t *testing.T, found, write, foo Object) {
	t.Helper()
	if taken := KindOf(found).DescribeTaken(found, write, foo); taken != "" {
		t.Errorf("fields of others are changed in %s (-before +after):\n%s", found.GetName(), taken)
	}
}

// CheckWanted fails if an object that is to be written is not as a Foo asks for.
func CheckWanted(t *testing.T, write, foo Object) {
	t.Helper()
	kind := KindOf(write)
	if write.GetName() != kind.Name(foo) || write.GetNamespace() != foo.GetNamespace() {
		t.Errorf("the write is to %s %s/%s, which is not the one that the Foo asks for", kind, write.GetNamespace(), write.GetName())
	}
	if !kind.Wanted(foo) {
		t.Errorf("the write is to %s %s, but the Foo asks for none", kind, write.GetName())
	}
	if !BelongsTo(write, foo) {
		t.Errorf("the written %s is not controlled by the Foo: %v", kind, write.GetOwnerReferences())
	}
	if differs := kind.Differs(write, foo); differs != "" {
		t.Errorf("the written %s %s", kind, differs)
	}
	owners := sets.New[types.UID]()
	for _, ref := range write.GetOwnerReferences() {
		if owners.Has(ref.UID) {
			t.Errorf("the written %s has two references to the owner %s", kind, ref.UID)
		}
		owners.Insert(ref.UID)
	}
}

// CheckStatus fails if the API server would refuse the calculated status of a Foo, or if the
// status violates an invariant.
func CheckStatus(t *testing.T, foo Object) {
	t.Helper()
	if observed := rows.ObservedGenerationOf(foo); observed != foo.GetGeneration() {
		t.Errorf("the status is of generation %d, the %s of %d", observed, OwnerOf(foo), foo.GetGeneration())
	}
	if foo, ok := foo.(*samplev1alpha1.Foo); ok && (foo.Status.Replicas < 0 || foo.Status.AvailableReplicas < 0 || len(foo.Status.Selector) > 4096) {
		t.Errorf("the status is out of the definition's bounds: %d, %d, a selector of %d bytes", foo.Status.Replicas, foo.Status.AvailableReplicas, len(foo.Status.Selector))
	}
	seen := map[string]int{}
	for _, condition := range rows.ConditionsOf(foo) {
		seen[condition.Type]++
		if seen[condition.Type] > 1 {
			t.Errorf("there are two conditions %s", condition.Type)
		}
		if length := utf8.RuneCountInString(condition.Message); length > 32768 {
			t.Errorf("the API server refuses a message of %d characters", length)
		}
		if !utf8.ValidString(condition.Message) {
			t.Errorf("the message is not valid UTF-8: %q", condition.Message)
		}
		if condition.LastTransitionTime.IsZero() {
			t.Errorf("the condition %s has no time", condition.Type)
		}
	}
	if seen["Ready"] != 1 {
		t.Fatalf("there is no condition Ready: %v", rows.ConditionsOf(foo))
	}
	checkReady(t, foo, *rows.ConditionOf(foo))
}

// ReadyOf returns the condition Ready of a status.
func ReadyOf(status samplev1alpha1.FooStatus) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(status.Conditions, "Ready"), metav1.Condition{})
}

func checkReady(t *testing.T, foo Object, ready metav1.Condition) {
	t.Helper()
	if ready.ObservedGeneration != foo.GetGeneration() || ready.Message == "" {
		t.Errorf("the condition Ready is of generation %d with the message %q", ready.ObservedGeneration, ready.Message)
	}
	statuses := map[string]metav1.ConditionStatus{
		"Available": metav1.ConditionTrue, "Progressing": metav1.ConditionFalse, "Degraded": metav1.ConditionFalse,
		"Unavailable": metav1.ConditionFalse, "Suspended": metav1.ConditionFalse, "Terminating": metav1.ConditionFalse,
	}
	for _, kind := range OwnerOf(foo).Kinds {
		statuses[kind.Kind+"Conflict"], statuses[kind.Kind+"Failed"] = metav1.ConditionFalse, metav1.ConditionFalse
	}
	if status, ok := statuses[ready.Reason]; !ok || ready.Status != status {
		t.Errorf("the reason is %q, and the status %s", ready.Reason, ready.Status)
	}
}

// The resources of the tests' objects.
var (
	FoosResource = samplev1alpha1.SchemeGroupVersion.WithResource("foos")
	// ChildGR is that of Primary in errors of the API server.
	ChildGR = Primary.Resource.GroupResource()
)

// semantic is equality.Semantic, which panics at a time.Time.
var semantic = func() conversion.Equalities {
	equalities := equality.Semantic.Copy()
	if err := equalities.AddFunc(time.Time.Equal); err != nil {
		panic(err)
	}
	return equalities
}()

// ExpectEqual fails the test if got is not want, and shows the difference.
func ExpectEqual(t *testing.T, what string, want, got any) {
	t.Helper()
	if !semantic.DeepEqual(want, got) {
		t.Errorf("%s is not as expected (-want +got):\n%s", what, diff.Diff(want, got))
	}
}

// Must ends the test if there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Advance moves the clock of a test's bubble forward, then waits until every goroutine in
// the bubble is idle. No real time passes.
func Advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// KeyOf returns the key of an object in the work queue.
func KeyOf(object metav1.Object) cache.ObjectName { return cache.MetaObjectToName(object) }

// NamespaceTerminating returns the API server's error for a create in a namespace that is
// being deleted.
func NamespaceTerminating() error {
	err := apierrors.NewForbidden(ChildGR, "web", errors.New("namespace team-a is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// NamesOf returns the names of objects.
func NamesOf[T metav1.Object](objects []T) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names
}
