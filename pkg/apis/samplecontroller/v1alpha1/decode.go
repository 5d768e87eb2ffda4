// SPDX-License-Identifier: Apache-2.0

// Decoding of a Foo's status, which accepts any stored status so that one Foo can't break
// a list.

package v1alpha1

import (
	encodingjson "encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// The range of a condition's time, in seconds since 1970. Outside this range, the package
// would write a time that the API server refuses or that no client can read.
const (
	earliest = -62135596799 // 0001-01-01T00:00:01Z
	latest   = 253402300799 // 9999-12-31T23:59:59Z
)

// UnmarshalJSON reads a status, and leaves fields that it can't read at their zero
// values. etcd may hold any status, because the CustomResourceDefinition's rules apply to
// writes, not to objects that were stored under an older definition. If a single Foo
// can't be decoded, every list of Foos fails, and informers make no progress for any Foo.
// Ignoring a field loses nothing, because the controller rewrites the status.
func (s *FooStatus) UnmarshalJSON(data []byte) error {
	type plain FooStatus // without UnmarshalJSON
	err := json.Unmarshal(data, (*plain)(s))
	if err != nil {
		err = s.salvage(data)
	}
	for i := range s.Conditions {
		since := &s.Conditions[i].LastTransitionTime
		if seconds := since.Unix(); seconds < earliest || seconds > latest {
			*since = metav1.Time{}
		}
	}
	return err
}

// salvage reads a status field by field.
func (s *FooStatus) salvage(data []byte) error {
	type plain FooStatus
	*s = FooStatus{}
	var fields map[string]encodingjson.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return ignoreTypes(data, err)
	}
	for name, value := range fields {
		field, err := json.Marshal(map[string]encodingjson.RawMessage{name: value})
		if err != nil {
			return err
		}
		before := *s
		if json.Unmarshal(field, (*plain)(s)) != nil {
			*s = before
		}
	}
	if s.Conditions == nil {
		s.Conditions = salvageConditions(fields["conditions"])
	}
	return nil
}

// ignoreTypes returns err if data is not valid JSON. It ignores valid JSON of the wrong
// type.
func ignoreTypes(data []byte, err error) error {
	if encodingjson.Valid(data) {
		return nil
	}
	return err
}

// salvageConditions returns the conditions that can be read.
func salvageConditions(data []byte) []metav1.Condition {
	var items []encodingjson.RawMessage
	if json.Unmarshal(data, &items) != nil {
		return nil
	}
	var conditions []metav1.Condition
	for _, item := range items {
		if condition, ok := salvageCondition(item); ok {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}

// salvageCondition reads a condition. If only its time can't be read, it returns the
// condition without the time.
func salvageCondition(data []byte) (condition metav1.Condition, ok bool) {
	if json.Unmarshal(data, &condition) == nil {
		return condition, true
	}
	var fields map[string]any
	if json.Unmarshal(data, &fields) != nil {
		return metav1.Condition{}, false
	}
	fields["lastTransitionTime"] = salvageTime(fields["lastTransitionTime"])
	data, err := json.Marshal(fields)
	if err != nil {
		return metav1.Condition{}, false
	}
	condition = metav1.Condition{}
	if json.Unmarshal(data, &condition) != nil {
		return metav1.Condition{}, false
	}
	return condition, true
}

// salvageTime reads a time whose letters may be lowercase, as RFC 3339 allows.
func salvageTime(value any) metav1.Time {
	text, _ := value.(string)
	var since metav1.Time
	if since.UnmarshalQueryParameter(strings.ToUpper(text)) != nil {
		return metav1.Time{}
	}
	return since
}
