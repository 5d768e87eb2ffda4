// SPDX-License-Identifier: Apache-2.0

// The keys of the caches' indexes.

package plan

import (
	"hash/maphash"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// indexBuckets is how many values an index has. Each is a set; a set for each object
// would be a tenth of the caches' memory.
const indexBuckets = 4096

// Buckets are the values of the caches' indexes. Whoever may write Foos chooses the names
// that are indexed. The seed, a different one at each start, prevents that somebody
// chooses names that all share one bucket.
type Buckets struct {
	seed maphash.Seed
}

// NewBuckets returns Buckets with a seed of their own.
func NewBuckets() Buckets { return Buckets{maphash.MakeSeed()} }

// Of returns the bucket of a value. Other values share it, so whoever looks something up
// there has to compare.
func (b Buckets) Of(value string) string {
	return strconv.FormatUint(maphash.String(b.seed, value)%indexBuckets, 10)
}

// ByControllerUID indexes an object by the UID of the Foo that controls it.
func (b Buckets) ByControllerUID(object metav1.Object) []string {
	if ref := ControllingFoo(object); ref != nil {
		return []string{b.Of(string(ref.UID))}
	}
	return nil
}

// ByChildName returns the function that indexes a Foo by the child of a kind that it asks
// for.
func (c *Child[T]) ByChildName(b Buckets) func(*samplev1alpha1.Foo) ([]string, error) {
	return func(foo *samplev1alpha1.Foo) ([]string, error) {
		if !c.IsWanted(foo) {
			return nil, nil
		}
		name := cache.ObjectName{Namespace: foo.Namespace, Name: c.Name(foo)}
		return []string{b.Of(name.String())}, nil
	}
}
