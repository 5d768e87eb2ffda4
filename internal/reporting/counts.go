// SPDX-License-Identifier: Apache-2.0

// What of a status changes with each Pod.

package reporting

import (
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// clearCounts clears the numbers of a status that change while a child makes progress.
func clearCounts(status *samplev1alpha1.FooStatus) {
	status.Replicas, status.AvailableReplicas = 0, 0
}
