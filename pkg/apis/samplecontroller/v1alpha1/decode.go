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

package v1alpha1

import (
	encodingjson "encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// The times that a condition can have, in seconds since 1970. Of any other, this
// package would write what the API server refuses, or what nobody can read.
const (
	earliest = -62135596799 // 0001-01-01T00:00:01Z
	latest   = 253402300799 // 9999-12-31T23:59:59Z
)

// UnmarshalJSON reads a status of which anything can be stored: the definition's
// rules hold for what is written, not for what an older definition has let in.
// A list with a single Foo that can't be read is an error for whoever lists, and
// an informer then stands still for all Foos. So here what can't be read is left
// at its zero value. That is no loss: a status is a report, and the controller
// writes it again.
func (s *FooStatus) UnmarshalJSON(data []byte) error {
	type plain FooStatus // has no UnmarshalJSON
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

// ignoreTypes returns an error of data that is no JSON. What is, but not of the
// type that it should have, is as good as nothing.
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

// salvageCondition reads a condition. If it is only the time that can't be read,
// the condition is without it.
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

// salvageTime reads a time that may have its letters in lower case, as RFC 3339
// allows.
func salvageTime(value any) metav1.Time {
	text, _ := value.(string)
	var since metav1.Time
	if since.UnmarshalQueryParameter(strings.ToUpper(text)) != nil {
		return metav1.Time{}
	}
	return since
}
