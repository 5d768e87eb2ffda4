// SPDX-License-Identifier: Apache-2.0

// The keys of the caches' indexes.

package plan

import (
	"hash/maphash"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
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

// ByControllerUID indexes an object by the UID of the one of the kind that controls it.
func (k *OwnerKind) ByControllerUID(b Buckets, object metav1.Object) []string {
	if ref := k.ControllerOf(object); ref != nil {
		return []string{b.Of(string(ref.UID))}
	}
	return nil
}

// ByChildName indexes a Foo by the child of the kind that it asks for.
func (c *ChildKind) ByChildName(b Buckets, owner Owner) []string {
	if !c.Wanted(owner) {
		return nil
	}
	name := cache.ObjectName{Namespace: owner.GetNamespace(), Name: c.Name(owner)}
	return []string{b.Of(name.String())}
}
