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
