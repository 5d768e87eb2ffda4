// SPDX-License-Identifier: Apache-2.0

// Children that are known to be newer than their Foos' specs.

package consistency

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/keyed"
)

// ConfirmedChildren remembers, for each Foo, the child that was written or read live
// for its newest spec, until the status says Ready. From that version on, the cached child
// is newer than the spec. Before it, the cache may show the child from before the spec was
// changed, and the Foo must not become ready by that.
type ConfirmedChildren struct {
	keyed.Map[confirmation]
}

// confirmation is the version of a child that was seen at a Foo's generation.
type confirmation struct {
	foo        types.UID
	generation int64
	child      types.UID
	version    string
}

// Observe records a child that the API server has just returned.
func (c *ConfirmedChildren) Observe(foo metav1.Object, live metav1.Object) {
	c.Set(cache.MetaObjectToName(foo), confirmation{foo.GetUID(), foo.GetGeneration(), live.GetUID(), live.GetResourceVersion()})
}

// UpToDate reports whether a cached child is known to be newer than the Foo's newest
// spec.
func (c *ConfirmedChildren) UpToDate(foo metav1.Object, cached metav1.Object) bool {
	known, ok := c.Get(cache.MetaObjectToName(foo))
	if !ok || known.foo != foo.GetUID() || known.generation != foo.GetGeneration() || known.child != cached.GetUID() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), known.version)
	return err == nil && order >= 0
}
