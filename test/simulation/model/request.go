// SPDX-License-Identifier: Apache-2.0

// Package model has what the simulation and the exploration have in common: requests, what
// users ask for, and what the control plane does.
package model

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/test/footest"
)

// Request is a request about one object.
type Request struct {
	// Verb is get, create, update or delete. Subresource may be status, for an update.
	Verb, Subresource string
	Kind              *footest.Kind
	Name              string
	// Sent is the object to create or update, or the options of a delete.
	Sent runtime.Object
}

// Action returns the verb, with the subresource, as in update-status.
func (r Request) Action() string {
	if r.Subresource != "" {
		return r.Verb + "-" + r.Subresource
	}
	return r.Verb
}

// String describes the request.
func (r Request) String() string { return fmt.Sprintf("%s %s %s", r.Action(), r.Kind, r.Name) }

// Write returns what a request that is not a get does to the object, which is nil if there is
// none. Who stores the change sets its resourceVersion, and the UID of a new object.
func (r Request) Write(stored footest.Object, now metav1.Time) (footest.Change, error) {
	switch r.Verb {
	case "create":
		change, err := r.Kind.Create(stored, r.Object())
		if err == nil {
			change.Object.SetNamespace(footest.Namespace)
		}
		return change, err
	case "update":
		return r.Kind.Update(stored, r.Object(), r.Subresource)
	case "delete":
		return r.Kind.Delete(stored, r.Name, r.DeleteOptions(), now)
	default:
		panic("no API server in memory has the verb " + r.Verb)
	}
}

// Object returns the object that a create or an update sends.
func (r Request) Object() footest.Object {
	return r.Sent.(footest.Object) //nolint:forcetypeassert // each object of the tests has metadata
}

// DeleteOptions returns the options of a delete.
func (r Request) DeleteOptions() metav1.DeleteOptions {
	if options, ok := r.Sent.(*metav1.DeleteOptions); ok {
		return *options
	}
	return metav1.DeleteOptions{}
}

// Denial returns the answer of an API server whose webhook denies a request with a code of its own: it
// has no reason.
func Denial(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code,
		Message: fmt.Sprintf(`admission webhook "names.example.com" denied the request: %d`, code),
	}}
}

func copyOf(object footest.Object) footest.Object {
	return object.DeepCopyObject().(footest.Object) //nolint:forcetypeassert // as the original
}
