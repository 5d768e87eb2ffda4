// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// Names that share a bucket in one process must not share one in the next. Otherwise users who
// may write Foos could collect such names, and slow down the handlers for everyone.
func TestBucketsDifferBetweenProcesses(t *testing.T) {
	first, second := newBuckets(), newBuckets()
	flooded, left := first.of("team-a/web"), 0
	const names = 1000
	for i, found := 0, 0; found < names; i++ {
		name := fmt.Sprintf("team-a/web-%d", i)
		if first.of(name) != flooded {
			continue
		}
		found++
		if second.of(name) == second.of("team-a/web") {
			left++
		}
	}
	if left > names/10 {
		t.Errorf("of %d names in one bucket, %d also share one in another process", names, left)
	}
}

// An index has 4,096 values, so that objects share them.
func TestOthersInTheSameBucketAreIgnored(t *testing.T) {
	owners, children := newCache(t, &samplev1alpha1.Foo{}), newCache(t, &corev1.ConfigMap{})
	kind := foos(owners.Informer(), siteKind, ownsKey(children.Informer(), "site"))
	footest.Must(t, Prepare(kind))
	var all []*samplev1alpha1.Foo
	for i := range 5000 {
		site := owner(fmt.Sprint("site-", i))
		owners.put(site)
		children.put(childOf(&siteKind, site.Name))
		all = append(all, site)
	}
	for _, site := range all {
		key := cache.MetaObjectToName(site)
		footest.ExpectEqual(t, "what the Site controls", []string{site.Name}, footest.NamesOf(kind.ControlledBy(kind.Rows[0], site)))
		footest.ExpectEqual(t, "who wants the child", []cache.ObjectName{key}, kind.AskingFor(kind.Rows[0], key, 2))
	}
}
