// SPDX-License-Identifier: Apache-2.0

// What is read from the caches.

package table

import (
	"hash/maphash"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/plan"
)

// Reads returns the resources that the informers read.
func (k *Kind) Reads() []schema.GroupVersionResource {
	resources := []schema.GroupVersionResource{k.Resource}
	for _, row := range k.Rows {
		resources = append(resources, row.Resource)
	}
	for _, row := range k.References {
		if row.Informer != nil {
			resources = append(resources, row.Resource)
		}
	}
	return resources
}

// Owner returns the owner with a key from the cache, or nil if there is none.
func (k *Kind) Owner(key cache.ObjectName) plan.Owner { return cached(k.Owners.Cache, key) }

// Row returns the row of a kind of children.
func (k *Kind) Row(of *plan.ChildKind) *Children {
	rows := k.Rows
	if of.IsReference() {
		rows = k.References
	}
	return rows[slices.IndexFunc(rows, func(row *Children) bool { return row.ChildKind == of })]
}

// Find returns what the caches have of a kind of children for an owner, for plan.Kind.NewWorld.
func (k *Kind) Find(of *plan.ChildKind, owner plan.Owner) plan.Found {
	row := k.Row(of)
	if of.IsReference() || of.IsItself() {
		return plan.Found{Named: row.Named, Owner: k.Owner}
	}
	return plan.Found{Named: row.Named, Controlled: k.ControlledBy(row, owner), Owner: k.Owner}
}

// Named returns the cached object with a key, or nil.
func (c *Children) Named(key cache.ObjectName) plan.Object {
	if c.Cache == nil {
		return nil
	}
	return cached(c.Cache, key)
}

// ControlledBy returns the cached objects of a row that an owner controls.
func (k *Kind) ControlledBy(row *Children, owner plan.Owner) (controlled []plan.Object) {
	for _, candidate := range lookUp(row.Cache, k.byController, k.buckets.of(string(owner.GetUID()))) {
		if k.IsControlledBy(candidate, owner) {
			controlled = append(controlled, candidate)
		}
	}
	return controlled
}

// AskingFor returns the keys of at most limit owners that want a child of a row with a name, or that name an
// object of a reference.
func (k *Kind) AskingFor(row *Children, child cache.ObjectName, limit int) (keys []cache.ObjectName) {
	for _, owner := range lookUp(k.Owners.Cache, row.byName, k.buckets.of(child.String())) {
		if len(keys) == limit {
			break
		}
		if row.Wants(owner, child) && !plan.IsTerminating(owner) {
			keys = append(keys, cache.MetaObjectToName(owner))
		}
	}
	return keys
}

// cached returns the object with a key from a cache, or nil if there is none.
func cached[T plan.Object](indexer cache.TypedIndexer[T], key cache.ObjectName) (found T) {
	object, exists, err := indexer.GetByKey(key.String())
	if err == nil && exists { // a cache in memory returns no error
		found = object.(T) //nolint:forcetypeassert // the informer's type
	}
	return found
}

// lookUp returns the objects in a bucket of an index.
func lookUp[T any](indexer cache.TypedIndexer[T], index, bucket string) []T {
	found, err := indexer.ByTypedIndex(index, bucket)
	if err != nil {
		panic(err) // the index is missing, which is a bug: nothing removes it at run time
	}
	return found
}

// indexBuckets is the number of values in an index. The index has a set for each value; a set
// for each object would take a tenth of the caches' memory.
const indexBuckets = 4096

// buckets maps keys to the values of the caches' indexes. Users who may write owners choose the
// names that are indexed. The seed, which differs at each start, keeps anyone from choosing
// names that all share one bucket.
type buckets struct {
	seed maphash.Seed
}

func newBuckets() buckets { return buckets{maphash.MakeSeed()} }

// of returns the bucket of a value. Other values share it, so a caller has to compare the
// objects that it finds there.
func (b buckets) of(value string) string {
	return strconv.FormatUint(maphash.String(b.seed, value)%indexBuckets, 10)
}
