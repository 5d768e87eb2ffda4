// SPDX-License-Identifier: Apache-2.0

// Children that admission changed, so that the same update is not sent again.

package consistency

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/keyed"
)

// AdmissionMutations remembers, for each Foo, a child that the API server stored
// otherwise than it was sent, as an admission webhook can make it do: one that puts a
// mirror's name before each image, for example. Sending the same again would have the
// same result, at each resync and for ever.
//
// An entry is valid until somebody changes what the Foo or the child asks for. It
// does not survive a restart.
type AdmissionMutations struct {
	keyed.Map[mutation]
}

// mutation is the state of both objects in which an update is useless.
type mutation struct {
	foo, child                     types.UID
	fooGeneration, childGeneration int64
	// childVersion is the resourceVersion of a child whose kind has no generation.
	childVersion string
	// differs says in what the child differs from what the Foo asks for. After a
	// restore of etcd a generation can occur twice, with another spec.
	differs string
}

func mutationOf(foo metav1.Object, child metav1.Object, differs string) mutation {
	known := mutation{
		foo: foo.GetUID(), fooGeneration: foo.GetGeneration(),
		child: child.GetUID(), childGeneration: child.GetGeneration(),
		differs: differs,
	}
	if known.childGeneration == 0 {
		known.childVersion = child.GetResourceVersion()
	}
	return known
}

// Observe records how a child that was stored differs from what the Foo asks for, "" if
// it does not.
func (o *AdmissionMutations) Observe(foo metav1.Object, stored metav1.Object, differs string) {
	if differs != "" {
		o.Set(cache.MetaObjectToName(foo), mutationOf(foo, stored, differs))
	} else {
		o.Delete(cache.MetaObjectToName(foo))
	}
}

// WouldRecur reports whether an update of a Foo's child would be changed in the same way
// again.
func (o *AdmissionMutations) WouldRecur(foo metav1.Object, child metav1.Object, differs string) bool {
	known, ok := o.Get(cache.MetaObjectToName(foo))
	return ok && known == mutationOf(foo, child, differs)
}
