// SPDX-License-Identifier: Apache-2.0

// Assertions and small helpers.

package footest

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// The resources of the tests' objects.
var (
	FoosResource = samplev1alpha1.SchemeGroupVersion.WithResource("foos")
	// ChildGR is that of Primary in errors of the API server.
	ChildGR = Primary.Resource.GroupResource()
)

// ExpectEqual fails the test if got is not want, and shows the difference.
func ExpectEqual(t *testing.T, what string, want, got any) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, got) {
		t.Errorf("%s is not as expected (-want +got):\n%s", what, diff.Diff(want, got))
	}
}

// Must ends the test if there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// KeyOf returns the key of an object in the work queue.
func KeyOf(object metav1.Object) cache.ObjectName { return cache.MetaObjectToName(object) }

// NamespaceTerminating returns the API server's error for a create in a namespace that is
// being deleted.
func NamespaceTerminating() error {
	err := apierrors.NewForbidden(ChildGR, "web", errors.New("namespace team-a is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// NamesOf returns the names of objects.
func NamesOf[T metav1.Object](objects []T) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names
}
