// SPDX-License-Identifier: Apache-2.0

// The row of the tests.

package plan

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// primary is the type of the children in tests that are about no kind in particular, that
// of footest.Primary, and shipped is its row with the default configuration.
type primary = *appsv1.Deployment

var shipped = Deployment(footest.DefaultImage)

type result = Result[primary]

// child is footest.Child with its type.
func child(owner string, options ...footest.ChildOption) primary {
	return footest.Child(owner, options...).(primary)
}

func newChild(foo *samplev1alpha1.Foo) primary { return shipped.Desired(foo, nil) }

func verdictAfter(foo *samplev1alpha1.Foo, result result) Verdict {
	return firstObstacle(foo, []Outcome{outcomeAfter(foo, result)})
}

func statusAfter(foo *samplev1alpha1.Foo, result result, now metav1.Time) samplev1alpha1.FooStatus {
	return CalculateStatus(foo, []Outcome{outcomeAfter(foo, result)}, now)
}

func outcomeAfter(foo *samplev1alpha1.Foo, result result) Outcome {
	if result.Child != nil {
		result.Drift = shipped.DescribeDrift(result.Child, foo, nil)
	}
	return shipped.Outcome(foo, result)
}

// transform is the transformer of both informers.
func transform(object any) (any, error) {
	if foo, ok := object.(*samplev1alpha1.Foo); ok {
		return TransformFoo(foo)
	}
	return shipped.Transform(object)
}

func trimmedCopy[T interface{ DeepCopy() T }](t *testing.T, object T) T {
	t.Helper()
	trimmed, err := transform(object.DeepCopy())
	footest.Must(t, err)
	return trimmed.(T)
}
