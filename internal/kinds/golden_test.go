// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/reconciletest"
	"example.com/sample-controller/test/footest"
)

func TestChildrenOfFoos(t *testing.T) {
	reconciletest.Golden[*samplev1alpha1.Foo](t, Declared(Options{Image: footest.DefaultImage})[0], "testdata")
}

// What a program needs besides, for Events, the Lease and reviews, does not depend on its kinds.
func TestTheRoleGrantsWhatTheKindsNeed(t *testing.T) {
	reconciletest.Permissions(t, "../../artifacts/deploy/permissions/controller.yaml", unconnected(Options{}))
}
