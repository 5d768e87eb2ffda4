// SPDX-License-Identifier: Apache-2.0

// In which fields two states of an object differ, in words.

package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

// describeDifferences lists the fields in which an object differs from what it should be,
// such as "spec.replicas is 1, not 2". Elements of a list go by their names, where they
// have any. Only drift is described, so this need not be fast.
func describeDifferences(found, wanted runtime.Object) string {
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
	should, errWanted := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err := errors.Join(err, errWanted); err != nil {
		return err.Error()
	}
	var differences []string
	compareFields("", is, should, &differences)
	return strings.Join(differences, "; ")
}

func compareFields(path string, is, should any, differences *[]string) {
	if reflect.DeepEqual(is, should) {
		return
	}
	isFields, isMap := fieldsOf(is)
	shouldFields, shouldMap := fieldsOf(should)
	isElement := strings.HasSuffix(path, "]")
	switch {
	case is == nil && isElement:
		*differences = append(*differences, path+" is missing")
	case shouldMap && (isMap || is == nil): // of what is missing, each field is
		for _, name := range slices.Sorted(maps.Keys(sets.KeySet(isFields).Union(sets.KeySet(shouldFields)))) {
			compareFields(join(path, name), isFields[name], shouldFields[name], differences)
		}
	default:
		*differences = append(*differences, fmt.Sprintf("%s is %s, not %s", path, quote(is, "missing"), quote(should, "left out")))
	}
}

// fieldsOf returns the fields of an object, or the elements of a list as "[name]" or
// "[index]".
func fieldsOf(value any) (map[string]any, bool) {
	switch value := value.(type) {
	case map[string]any:
		return value, true
	case []any:
		fields := map[string]any{}
		for i, element := range value {
			key := "[" + nameOf(element, strconv.Itoa(i)) + "]"
			if _, taken := fields[key]; taken {
				key = fmt.Sprintf("[%d]", i)
			}
			fields[key] = element
		}
		return fields, true
	}
	return nil, false
}

// nameOf returns what tells an element of a list from the others, whatever these are,
// because the caches may not keep them. A volume may be mounted twice: its name does not.
func nameOf(element any, otherwise string) string {
	fields, _ := element.(map[string]any)
	for _, key := range []string{"mountPath", "devicePath", "name"} {
		if name, ok := fields[key].(string); ok {
			return name
		}
	}
	return otherwise
}

func join(path, name string) string {
	if path == "" || strings.HasPrefix(name, "[") {
		return path + name
	}
	return path + "." + name
}

// quote returns a value as a text of bounded length, or what to say of none.
func quote(value any, none string) string {
	text := none
	switch value := value.(type) {
	case nil:
	case string:
		text = strconv.Quote(value) // not as JSON, which leaves control characters alone
	default:
		encoded, _ := json.Marshal(value) // it was made from JSON
		text = string(encoded)
	}
	return truncate(text, maxQuotedName)
}
