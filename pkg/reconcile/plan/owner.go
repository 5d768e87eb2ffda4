// SPDX-License-Identifier: Apache-2.0

// The kinds of the program, whose objects own children.

package plan

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is an object of the Kubernetes API, such as a *corev1.ConfigMap, or nil if there is
// none.
type Object interface {
	metav1.Object
	runtime.Object
}

// CopyOf returns a deep copy, to change instead of a shared object.
func CopyOf[T Object](object T) T {
	return object.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the type of the original
}

// Owner is an object that owns children. The API package of its kind implements these methods.
// Objects of a cache are shared: the setters are for copies.
type Owner interface {
	Object
	// GetSpec returns a pointer to the desired state, and GetStatus to the observed state.
	GetSpec() any
	GetStatus() any
	// IsSuspended reports whether only its status may be written.
	IsSuspended() bool
	// GetConditions returns the conditions of the status, and GetObservedGeneration the
	// generation that the status describes.
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
	GetObservedGeneration() int64
	SetObservedGeneration(generation int64)
	// GetLastHandledSync returns the newest request for a sync that the status answers: the value of the
	// annotation SyncRequested, or "".
	GetLastHandledSync() string
	SetLastHandledSync(request string)
	// ResetProgress clears the numbers in the status that change while a child makes progress.
	ResetProgress()
}

// Kind is a kind of the program.
type Kind struct {
	// Name is its name, such as "Foo", and Resource identifies it in URLs.
	Name     string
	Resource schema.GroupVersionResource
	// ClusterScoped is true if its objects have no namespace. They may own cluster-scoped objects, and
	// objects in any namespace.
	ClusterScoped bool
	// Group is the group of annotations. "" means that of the resource.
	Group string
	// Keep copies what decisions read of an object of a kind that isn't the program's own. It is nil for
	// the program's own kinds, of which spec and status are kept.
	Keep func(kept, found Object)
	// Children are the kinds that its objects own, in the order in which they are written.
	Children []*ChildKind
	// References are the kinds that its objects name and do not own. They are read before.
	References []*ChildKind
	// Calls are the things outside the cluster that its objects stand for. They come between the two.
	Calls []*ChildKind
	// Finalizer is the finalizer of its objects, such as "example.com/certificate", or "". An object gets it only
	// if a row needs it. After the last such row is gone, keep the name for a release, or longer if that may be
	// skipped: the program then removes it from each object. One whose name is no longer here stays, and
	// keeps its object from being deleted.
	Finalizer string
}

// AdoptBy returns the annotation that names, on an object without a controller, the owner, in the
// same namespace unless it has none, that may become its controller: "GROUP/adopt-by". Setting it requires permission to
// edit that object. The adoption removes it, so that each needs new consent.
func (k *Kind) AdoptBy() string { return k.group() + "/adopt-by" }

// SyncRequested returns the annotation of an owner that asks for a sync now: "GROUP/sync-requested". Each new
// value, such as a time, ends each back-off and each pause of that owner once.
func (k *Kind) SyncRequested() string { return k.group() + "/sync-requested" }

func (k *Kind) group() string { return cmp.Or(k.Group, k.Resource.Group) }

// requestOf returns the sync that an owner's user asks for, or "". A longer text than the caches keep is none.
func (k *Kind) requestOf(owner Object) string {
	if request := owner.GetAnnotations()[k.SyncRequested()]; len(request) <= MaxKept {
		return request
	}
	return ""
}

// PendingSync returns the sync that an owner's user asks for and that its status does not answer, or "".
func (k *Kind) PendingSync(owner Owner) string {
	if request := k.requestOf(owner); request != owner.GetLastHandledSync() {
		return request
	}
	return ""
}
