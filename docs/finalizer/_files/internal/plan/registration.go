// SPDX-License-Identifier: Apache-2.0

// What a Foo records and reports of its registration outside the cluster.

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// IsHeld reports whether a Foo has the finalizer of its registration.
func IsHeld(foo Owner) bool {
	return slices.Contains(foo.GetFinalizers(), samplev1alpha1.FinalizerRegistered)
}

// RegisteredGeneration returns the generation in which a Foo was last registered, or 0.
func RegisteredGeneration(foo Owner) int64 {
	if registered := meta.FindStatusCondition(*foo.GetConditions(), samplev1alpha1.ConditionRegistered); registered != nil {
		return registered.ObservedGeneration
	}
	return 0
}

// Registration returns what the registration contributes to a Foo's status after a sync.
func Registration(foo Owner, done bool, err error) Verdict {
	switch {
	case err != nil && IsTerminating(foo):
		return notReady(samplev1alpha1.ReasonDeregistrationFailed, "The Foo cannot be deregistered: %s", truncate(err.Error(), maxServerWords))
	case err != nil:
		return notReady(samplev1alpha1.ReasonRegistrationFailed, "The Foo cannot be registered: %s", truncate(err.Error(), maxServerWords))
	case IsTerminating(foo):
		return notReady(samplev1alpha1.ReasonTerminating, "The Foo is being deregistered")
	case !done:
		return notReady(samplev1alpha1.ReasonProgressing, "The Foo is being registered")
	}
	return Verdict{Status: metav1.ConditionTrue, Report: func(after Owner) {
		meta.SetStatusCondition(after.GetConditions(), metav1.Condition{
			Type: samplev1alpha1.ConditionRegistered, Status: metav1.ConditionTrue, ObservedGeneration: foo.GetGeneration(), Reason: "Registered",
		})
	}}
}
