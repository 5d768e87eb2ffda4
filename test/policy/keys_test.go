// SPDX-License-Identifier: Apache-2.0

// Keys of maps that random content would not have.

package policy

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// keysIn returns the keys of the maps in a value, and the names of its fields.
func keysIn(value any) sets.Set[string] {
	keys := sets.New[string]()
	for key, inner := range fieldsIn(value) {
		keys = keys.Union(keysIn(inner)).Insert(key)
	}
	for _, element := range elementsIn(value) {
		keys = keys.Union(keysIn(element))
	}
	return keys
}

// shareKeys adds a key to half of the maps in an object that have any, but not to labels
// and annotations: a row may do something to a key that a new child has elsewhere, such as
// remove it from another map.
func shareKeys(value reflect.Value, keys sets.Set[string], random *rand.Rand) {
	if value.Type() == reflect.TypeFor[metav1.ObjectMeta]() {
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			shareKeys(value.Elem(), keys, random)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				shareKeys(value.Field(i), keys, random)
			}
		}
	case reflect.Slice:
		for i := range value.Len() {
			shareKeys(value.Index(i), keys, random)
		}
	case reflect.Map:
		if value.Len() == 0 || value.Type().Key().Kind() != reflect.String || keys.Len() == 0 || random.IntN(2) == 0 {
			return
		}
		sorted := slices.Sorted(maps.Keys(keys))
		key := reflect.ValueOf(sorted[random.IntN(len(sorted))]).Convert(value.Type().Key())
		iterator := value.MapRange()
		iterator.Next()
		value.SetMapIndex(key, iterator.Value())
	}
}
