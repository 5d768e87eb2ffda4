// SPDX-License-Identifier: Apache-2.0

// The objects in requests and responses.

package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object is an object in a request or response, with the fields of all kinds that this
// project reads. A response may also be a Status, a Scale, a list, or
// PartialObjectMetadata.
type Object struct {
	Kind     string
	Metadata metav1.ObjectMeta
	// Spec is decoded as by encoding/json, because each kind has another form.
	Spec   any
	Status Status
	// Target is the node of a Binding.
	Target struct{ Name string }
	// Items are the objects of a list.
	Items []Object
}

// Status is an object's status.
type Status struct {
	AvailableReplicas *int
	Phase             string
	Conditions        []Condition
}

// Condition is a condition in a Status.
type Condition struct{ Type, Status, Reason, Message string }

// UnmarshalJSON leaves the status empty if it has another form: the status of an error is
// a string, and that of a custom resource may have any form.
func (s *Status) UnmarshalJSON(data []byte) error {
	type form Status
	var known form
	if json.Unmarshal(data, &known) == nil {
		*s = Status(known)
	}
	return nil
}

// Ready returns the condition Ready, or nil.
func (s Status) Ready() *Condition {
	if i := slices.IndexFunc(s.Conditions, func(c Condition) bool { return c.Type == "Ready" }); i >= 0 {
		return &s.Conditions[i]
	}
	return nil
}

// Replicas returns the desired replicas, or nil if the object does not set them.
func (o *Object) Replicas() any {
	spec, _ := o.Spec.(map[string]any)
	return spec["replicas"]
}

// Report describes an object's status in a few words: its available replicas or its
// phase, and that it is Ready or why it is not.
func (o *Object) Report() string {
	available, ready := 0, o.Status.Ready()
	if o.Status.AvailableReplicas != nil {
		available = *o.Status.AvailableReplicas
	}
	isReady := ready != nil && ready.Status == "True"
	var notes []string
	switch {
	case o.Replicas() != nil:
		notes = append(notes, fmt.Sprintf("%d/%v available", available, o.Replicas()))
	case o.Status.AvailableReplicas != nil:
		notes = append(notes, fmt.Sprintf("%d available", available))
	case o.Status.Phase != "" && !isReady:
		notes = append(notes, o.Status.Phase)
	}
	switch {
	case isReady:
		notes = append(notes, "Ready")
	case ready != nil && ready.Reason != "":
		notes = append(notes, ready.Reason)
	}
	return strings.Join(notes, ", ")
}

// Body is a summary of the written object.
type Body struct {
	Kind, Name, GenerateName, UID string
	// Owners are the object's owners.
	Owners []Owner
	// Note describes in a few words the status that was written, or the desired state; it
	// is empty if the log does not contain them.
	Note string
}

// Owner is an object that owns another; Kind is in the form of "ConfigMap".
type Owner struct{ Kind, Name, UID string }

// bodyOf combines the object in the request with the one in the response.
func bodyOf(w Write) *Body {
	if w.Request == nil && w.Response == nil {
		return nil
	}
	body := &Body{}
	for _, o := range []*Object{w.Request, w.Response} {
		if o == nil {
			continue
		}
		keep(&body.Note, noteOf(w, o))
		kind := o.Kind
		switch {
		case kind == "Status", kind == "Binding", kind == "Scale", kind == "Eviction", kind == "DeleteOptions":
			continue // They have neither the kind nor the owners of the object.
		case kind == "PartialObjectMetadata":
			kind = ""
		case o.Items != nil:
			kind = strings.TrimSuffix(kind, "List")
		}
		keep(&body.Kind, kind)
		keep(&body.Name, o.Metadata.Name)
		keep(&body.GenerateName, o.Metadata.GenerateName)
		keep(&body.UID, string(o.Metadata.UID))
		if owners := o.Metadata.OwnerReferences; len(owners) > 0 {
			body.Owners = nil
			for _, owner := range owners {
				body.Owners = append(body.Owners, Owner{owner.Kind, owner.Name, string(owner.UID)})
			}
		}
	}
	return body
}

// objectOf returns nil for a body that is not an object, such as a JSON patch.
func objectOf(raw json.RawMessage) *Object {
	var o *Object
	if len(raw) == 0 || json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

func keep(field *string, value string) {
	if value != "" {
		*field = value
	}
}

// noteOf describes the status in a body, or the desired state.
func noteOf(w Write, o *Object) string {
	switch {
	case o.Kind == "Binding":
		return "to " + o.Target.Name
	case o.Kind == "Status", w.Verb == "delete":
	case w.Subresource == "status":
		return o.Report()
	case o.Replicas() != nil:
		return fmt.Sprintf("replicas %v", o.Replicas())
	}
	return ""
}
