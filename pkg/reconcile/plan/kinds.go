// SPDX-License-Identifier: Apache-2.0

// The kinds of the program, whose objects own children.

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
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

// Owner is an object that owns children: a Foo. The code that is the same for every kind of
// the program accesses it through these methods.
type Owner interface {
	Object
	// GetSpec returns the desired state, and GetStatus the observed state, for comparison.
	GetSpec() any
	GetStatus() any
	// IsSuspended reports whether only its status may be written.
	IsSuspended() bool
	// GetConditions and GetObservedGeneration return fields of the status, to be read or set.
	GetConditions() *[]metav1.Condition
	GetObservedGeneration() *int64
	// ResetStatus clears the status, and ResetProgress the numbers in it that change while a
	// child makes progress.
	ResetStatus()
	ResetProgress()
}

// OwnerKind is a kind of the program.
type OwnerKind struct {
	// Kind is its name, such as "Foo", and Resource identifies it in URLs.
	Kind     string
	Resource schema.GroupVersionResource
	// Trim returns a new object with only the spec and the status of found.
	Trim func(found Owner) Owner
	// Children are the kinds that its objects own, in the order in which they are written.
	Children []*ChildKind
}

// Kinds returns the kinds of the program.
func Kinds(image string, options ...PodOption) []*OwnerKind {
	return []*OwnerKind{Foos(image, options...)}
}

// Foos declares the kind Foo and the kinds that Foos own. Their Pods run image.
func Foos(image string, options ...PodOption) *OwnerKind {
	kind := &OwnerKind{
		Kind:     "Foo",
		Resource: samplev1alpha1.SchemeGroupVersion.WithResource("foos"),
		Trim: func(found Owner) Owner {
			foo := found.(*samplev1alpha1.Foo) //nolint:forcetypeassert // an object of the kind
			return &samplev1alpha1.Foo{Spec: foo.Spec, Status: foo.Status}
		},
	}
	kind.Children = []*ChildKind{
		Deployment(image, options...).Of(kind),
	}
	return kind
}
