// SPDX-License-Identifier: Apache-2.0

// The kinds of the program, whose objects own others.

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Object is an object of the Kubernetes API, such as a *corev1.ConfigMap. It is nil where
// there is none.
type Object interface {
	metav1.Object
	runtime.Object
}

// CopyOf returns a deep copy, to be changed where the object is shared.
func CopyOf[T Object](object T) T {
	return object.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the type of the original
}

// Owner is an object that owns others: a Foo. All that is the same for every kind of the
// program sees one through these methods.
type Owner interface {
	Object
	// GetSpec returns the desired state, and GetStatus the observed one. They are for
	// comparing.
	GetSpec() any
	GetStatus() any
	// IsSuspended reports whether nothing may be written for it but its status.
	IsSuspended() bool
	// GetConditions and GetObservedGeneration return fields of the status, which may be set.
	GetConditions() *[]metav1.Condition
	GetObservedGeneration() *int64
	// ResetStatus clears the status, and ResetProgress those numbers in it that change while
	// a child makes progress.
	ResetStatus()
	ResetProgress()
}

// OwnerKind is a kind of the program.
type OwnerKind struct {
	// Kind is its name, such as "Foo", and Resource that of its URLs.
	Kind     string
	Resource schema.GroupVersionResource
	// Trim returns a new object with the spec and the status of another.
	Trim func(found Owner) Owner
	// Children are the kinds that its objects own, in the order in which they are written.
	Children []*ChildKind
}

// Kinds returns the kinds of the program.
func Kinds(image string) []*OwnerKind {
	return []*OwnerKind{Foos(image)}
}

// Foos declares the kind Foo and what Foos own. image is that of their Pods.
func Foos(image string) *OwnerKind {
	foos := &OwnerKind{
		Kind:     "Foo",
		Resource: samplev1alpha1.SchemeGroupVersion.WithResource("foos"),
		Trim: func(found Owner) Owner {
			foo := found.(*samplev1alpha1.Foo) //nolint:forcetypeassert // an object of the kind
			return &samplev1alpha1.Foo{Spec: foo.Spec, Status: foo.Status}
		},
	}
	foos.Children = []*ChildKind{
		Deployment(image).Of(foos),
	}
	return foos
}
