// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

// The API package, which clients import, has constants of its own for what the controller writes.
func TestTheAPINamesWhatTheControllerWrites(t *testing.T) {
	for _, same := range [][2]string{
		{samplev1alpha1.ConditionReady, plan.ConditionReady},
		{samplev1alpha1.ConditionStalled, plan.ConditionStalled},
		{samplev1alpha1.ConditionSuspended, plan.ConditionSuspended},
		{samplev1alpha1.ReasonAvailable, plan.ReasonAvailable},
		{samplev1alpha1.ReasonProgressing, plan.ReasonProgressing},
		{samplev1alpha1.ReasonDegraded, plan.ReasonDegraded},
		{samplev1alpha1.ReasonUnavailable, plan.ReasonUnavailable},
		{samplev1alpha1.ReasonTerminating, plan.ReasonTerminating},
		{samplev1alpha1.ReasonSuspended, plan.ReasonSuspended},
		{samplev1alpha1.ReasonRepairsUndone, plan.ReasonRepairsUndone},
		{samplev1alpha1.ReasonDeploymentConflict, "Deployment" + plan.SuffixConflict},
		{samplev1alpha1.ReasonDeploymentFailed, "Deployment" + plan.SuffixFailed},
		{samplev1alpha1.AnnotationAdoptBy, declared(footest.DefaultImage).AdoptBy()},
	} {
		footest.ExpectEqual(t, "what the controller writes", same[0], same[1])
	}
}
