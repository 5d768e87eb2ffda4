// SPDX-License-Identifier: Apache-2.0

// Objects of other kinds of the program, made from Foos.

package footest

import (
	"encoding/json"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// LikeFoo returns an object of a kind of the program with the metadata and the conditions
// of a Foo, which asks for children of the same name; for the kind Foo, that Foo.
func LikeFoo[F Object](foo *samplev1alpha1.Foo) (like F) {
	if foo == nil {
		return like
	}
	owner := OwnerOf(like)
	if same, ok := Object(foo).(F); ok {
		like = same
	} else {
		size := int32(1)
		if foo.Spec.Replicas != nil {
			size = *foo.Spec.Replicas
		}
		like = as[F](owner.New(foo.Name, Primary.Name(foo), size))
		reflect.ValueOf(like).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(*foo.ObjectMeta.DeepCopy()))
		status, err := json.Marshal(&foo.Status)
		if err == nil {
			err = json.Unmarshal(status, statusOf(like).Addr().Interface())
		}
		if err != nil {
			panic(err)
		}
	}
	for _, kind := range owner.Kinds {
		kind.Ask(like)
	}
	return like
}

// ofKind returns references to Foos as references to the owners of a kind.
func ofKind(child *Kind, refs []metav1.OwnerReference) []metav1.OwnerReference {
	changed := slices.Clone(refs)
	for i := range changed {
		if changed[i].Kind == FooKind.Kind {
			changed[i].Kind = child.Owner().Kind.Kind
		}
	}
	return changed
}
