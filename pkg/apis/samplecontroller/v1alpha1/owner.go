// SPDX-License-Identifier: Apache-2.0

// The methods of plan.Owner, with which the controller reads a Foo and sets its status.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// GetSpec returns the spec.
func (foo *Foo) GetSpec() any { return &foo.Spec }

// GetStatus returns the status.
func (foo *Foo) GetStatus() any { return &foo.Status }

// IsSuspended reports whether the controller may write nothing but the status for the Foo.
func (foo *Foo) IsSuspended() bool { return ptr.Deref(foo.Spec.Suspend, false) }

// GetConditions returns the conditions of the status.
func (foo *Foo) GetConditions() []metav1.Condition { return foo.Status.Conditions }

// SetConditions sets the conditions of the status.
func (foo *Foo) SetConditions(conditions []metav1.Condition) { foo.Status.Conditions = conditions }

// GetObservedGeneration returns the generation that the status describes.
func (foo *Foo) GetObservedGeneration() int64 { return foo.Status.ObservedGeneration }

// SetObservedGeneration sets the generation that the status describes.
func (foo *Foo) SetObservedGeneration(generation int64) { foo.Status.ObservedGeneration = generation }

// GetLastHandledSync returns the newest request for a sync that the status answers.
func (foo *Foo) GetLastHandledSync() string { return foo.Status.LastHandledSync }

// SetLastHandledSync sets the newest request for a sync that the status answers.
func (foo *Foo) SetLastHandledSync(request string) { foo.Status.LastHandledSync = request }

// ResetProgress clears the numbers in the status that change with each Pod.
func (foo *Foo) ResetProgress() { foo.Status.Replicas, foo.Status.AvailableReplicas = 0, 0 }
