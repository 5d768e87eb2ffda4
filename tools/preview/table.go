// SPDX-License-Identifier: Apache-2.0

package preview

import "example.com/sample-controller/internal/plan"

// Table returns the rows of the controller's table, in order. image is that of the Pods.
func Table(image string) []Row {
	return []Row{
		RowOf(plan.Deployment(image)),
	}
}
