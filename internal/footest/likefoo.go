/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
