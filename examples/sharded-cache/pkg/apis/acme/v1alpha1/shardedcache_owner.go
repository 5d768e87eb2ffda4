// The methods of plan.Owner, with which the controller reads a ShardedCache and sets its status.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// GetSpec returns the spec.
func (o *ShardedCache) GetSpec() any { return &o.Spec }

// GetStatus returns the status.
func (o *ShardedCache) GetStatus() any { return &o.Status }

// IsSuspended reports whether the controller may write nothing but the status.
func (o *ShardedCache) IsSuspended() bool { return ptr.Deref(o.Spec.Suspend, false) }

// GetConditions returns the conditions of the status.
func (o *ShardedCache) GetConditions() []metav1.Condition { return o.Status.Conditions }

// SetConditions sets the conditions of the status.
func (o *ShardedCache) SetConditions(conditions []metav1.Condition) { o.Status.Conditions = conditions }

// GetObservedGeneration returns the generation that the status describes.
func (o *ShardedCache) GetObservedGeneration() int64 { return o.Status.ObservedGeneration }

// GetLastHandledSync returns the newest request for a sync that the status answers.
func (o *ShardedCache) GetLastHandledSync() string { return o.Status.LastHandledSync }

// SetLastHandledSync sets the newest request for a sync that the status answers.
func (o *ShardedCache) SetLastHandledSync(request string) { o.Status.LastHandledSync = request }

// SetObservedGeneration sets the generation that the status describes.
func (o *ShardedCache) SetObservedGeneration(generation int64) {
	o.Status.ObservedGeneration = generation
}

// ResetProgress clears the numbers in the status that change while a child makes progress.
func (o *ShardedCache) ResetProgress() { o.Status.ReadyShards = 0 }
