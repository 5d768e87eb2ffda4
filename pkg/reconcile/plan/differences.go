// SPDX-License-Identifier: Apache-2.0

// A description of the fields in which two states of an object differ.

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

// describeDifferences lists the fields in which an object differs from its desired state,
// such as "spec.replicas is 1, not 2". It identifies elements of a list by name, if they have
// one. It describes only drift, so it need not be fast.
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
	case shouldMap && (isMap || is == nil): // a missing object lacks each field
		for _, name := range slices.Sorted(maps.Keys(sets.KeySet(isFields).Union(sets.KeySet(shouldFields)))) {
			compareFields(join(path, name), isFields[name], shouldFields[name], differences)
		}
	default:
		*differences = append(*differences, fmt.Sprintf("%s is %s, not %s", path, quote(is, "unset"), quote(should, "unset")))
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

// nameOf returns a value that distinguishes an element of a list from all others, including
// those that the caches do not keep. A mount's name does not, because a volume may be mounted
// twice.
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

// quote returns a value as text of bounded length, or none if there is no value.
func quote(value any, none string) string {
	text := none
	switch value := value.(type) {
	case nil:
	case string:
		text = strconv.Quote(value) // not as JSON, which does not escape all control characters
	default:
		encoded, _ := json.Marshal(value) // it was decoded from JSON
		text = string(encoded)
	}
	return Truncate(text, maxQuotedName)
}
