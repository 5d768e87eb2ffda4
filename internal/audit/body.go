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

// The objects in requests and responses.

package audit

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Body is what the log records of the written object.
type Body struct {
	Kind, Name, GenerateName, UID string
	// Owners are the object's owners.
	Owners []Owner
	// Note describes the object's state in a few words; it is empty if the log does not
	// contain the state.
	Note string
}

// Owner is an object that owns another; Kind is in the form of "Deployment".
type Owner struct{ Kind, Name, UID string }

// object is the part of an object that a Body is made from.
type object struct {
	Kind     string
	Metadata struct {
		Name, GenerateName, UID string
		OwnerReferences         []Owner
	}
	Spec struct{ Replicas *int }
	// Target is set in a Binding.
	Target struct{ Name string }
	Status json.RawMessage
}

// status is the part of an object's status that a note is made from.
type status struct {
	Replicas, AvailableReplicas *int
	Phase                       string
	Conditions                  []struct{ Type, Status, Reason string }
}

// bodyOf combines the object in the request with the one in the response. It ignores
// bodies that it does not understand: a patch may have any form, and a response may be a
// Status.
func bodyOf(request, response json.RawMessage) *Body {
	asked, sent := objectOf(request)
	got, answered := objectOf(response)
	if !sent && !answered {
		return nil
	}
	body := &Body{Note: noteOf(got)}
	if body.Note == "" {
		body.Note = noteOf(asked)
	}
	for _, o := range []object{asked, got} {
		switch o.Kind {
		case "Status", "Binding", "Scale", "Eviction", "DeleteOptions":
			continue // These have neither the object's kind nor its owners.
		}
		keep(&body.Kind, o.Kind)
		keep(&body.Name, o.Metadata.Name)
		keep(&body.GenerateName, o.Metadata.GenerateName)
		keep(&body.UID, o.Metadata.UID)
		if len(o.Metadata.OwnerReferences) > 0 {
			body.Owners = o.Metadata.OwnerReferences
		}
	}
	return body
}

func objectOf(raw json.RawMessage) (object, bool) {
	var o object
	if len(raw) == 0 || json.Unmarshal(raw, &o) != nil {
		return object{}, false
	}
	return o, true
}

func keep(field *string, value string) {
	if value != "" {
		*field = value
	}
}

// noteOf describes an object's state: its desired and available replicas, its phase, and
// whether it is Ready.
func noteOf(o object) string {
	var s status
	if len(o.Status) > 0 && json.Unmarshal(o.Status, &s) != nil {
		return ""
	}
	var notes []string
	switch {
	case o.Kind == "Binding":
		notes = append(notes, "to "+o.Target.Name)
	case s.AvailableReplicas != nil && o.Spec.Replicas != nil:
		notes = append(notes, fmt.Sprintf("%d/%d available", *s.AvailableReplicas, *o.Spec.Replicas))
	case o.Spec.Replicas != nil:
		notes = append(notes, fmt.Sprintf("replicas %d", *o.Spec.Replicas))
	case s.Phase != "":
		notes = append(notes, s.Phase)
	}
	for _, condition := range s.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			notes = append(notes, "Ready")
		}
	}
	return strings.Join(notes, ", ")
}
