// SPDX-License-Identifier: Apache-2.0

// Package audit reads the writes from the audit log of an API server: the requests to
// change an object, and who made them. It reads logs of all levels; from level Request on
// it also returns the objects.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Write is a request to change an object, as the log records it.
type Write struct {
	Verb        string
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	// Name is empty if the server generated the name and the log has no bodies, and for
	// requests that concern many objects.
	Name string
	// Replaces is the resourceVersion that an update or a patch had as its precondition;
	// empty if it had none, and for a patch if the log has no bodies.
	Replaces string
	// User is the authenticated or impersonated user; Agent is the user agent.
	User, Agent string
	// Manager is the request's field manager, as in managedFields.
	Manager string
	// Code is the HTTP status of the response, and Reason the API's reason for a failure.
	Code   int
	Reason string
	// Received and Done are the times at which the server received the request and
	// completed the response, by the server's clock.
	Received, Done time.Time
	// Request and Response are the objects in the bodies; nil if the log does not contain
	// them.
	Request, Response *Object
	// Body is their summary; nil at level Metadata.
	Body *Body
}

// OK reports whether the request succeeded.
func (w Write) OK() bool { return w.Code >= 200 && w.Code < 300 }

// Path returns the resource with its subresource, as in foos/status.
func (w Write) Path() string {
	if w.Subresource == "" {
		return w.Resource
	}
	return w.Resource + "/" + w.Subresource
}

// event is the part of an audit.k8s.io Event that a Write is made from.
type event struct {
	Kind             string
	Stage            string
	RequestURI       string
	Verb             string
	UserAgent        string
	User             struct{ Username string }
	ImpersonatedUser *struct{ Username string }
	ObjectRef        *struct{ APIGroup, Resource, Subresource, Namespace, Name, ResourceVersion string }
	ResponseStatus   struct {
		Code   int
		Reason string
	}
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
	RequestObject            json.RawMessage
	ResponseObject           json.RawMessage
	Items                    []json.RawMessage
}

// errNoEvent is the error for JSON that is not an audit event.
var errNoEvent = errors.New("this is not an event of audit.k8s.io")

// Parse reads one line of the log: an Event, or an EventList, as a webhook receives it.
// It ignores requests that change nothing: reads, dry runs, and requests without a
// response yet.
func Parse(line []byte) ([]Write, error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, fmt.Errorf("reading a line of the audit log: %w", err)
	}
	if strings.HasSuffix(e.Kind, "List") {
		return parseItems(e.Items)
	}
	if e.Stage == "" || e.Verb == "" {
		return nil, fmt.Errorf("reading a line of the audit log: %w", errNoEvent)
	}
	uri, err := url.ParseRequestURI(e.RequestURI)
	if err != nil {
		return nil, fmt.Errorf("reading a line of the audit log: %w", err)
	}
	query := uri.Query()
	if !changes(e) || query.Has("dryRun") {
		return nil, nil
	}
	if e.StageTimestamp.IsZero() {
		return nil, fmt.Errorf("reading a line of the audit log: %w: it has no time", errNoEvent)
	}
	return []Write{writeOf(e, query)}, nil
}

func parseItems(items []json.RawMessage) ([]Write, error) {
	var all []Write
	for _, item := range items {
		writes, err := Parse(item)
		if err != nil {
			return nil, err
		}
		all = append(all, writes...)
	}
	return all, nil
}

// changes reports whether an event is the response to a request to change an object.
func changes(e event) bool {
	if e.ObjectRef == nil || e.Stage != "ResponseComplete" && e.Stage != "Panic" {
		return false
	}
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

func writeOf(e event, query url.Values) Write {
	w := Write{
		Verb:        e.Verb,
		Group:       e.ObjectRef.APIGroup,
		Resource:    e.ObjectRef.Resource,
		Subresource: e.ObjectRef.Subresource,
		Namespace:   e.ObjectRef.Namespace,
		Name:        e.ObjectRef.Name,
		Replaces:    e.ObjectRef.ResourceVersion,
		User:        e.User.Username,
		Agent:       e.UserAgent,
		Manager:     managerOf(query, e.UserAgent),
		Code:        e.ResponseStatus.Code,
		Reason:      e.ResponseStatus.Reason,
		Received:    e.RequestReceivedTimestamp,
		Done:        e.StageTimestamp,
		Request:     objectOf(e.RequestObject),
		Response:    objectOf(e.ResponseObject),
	}
	if w.Verb == "patch" && w.Request != nil {
		keep(&w.Replaces, w.Request.Metadata.ResourceVersion)
	}
	w.Body = bodyOf(w)
	if e.ImpersonatedUser != nil {
		w.User = e.ImpersonatedUser.Username
	}
	if e.Stage == "Panic" {
		w.Code = http.StatusInternalServerError
	}
	if w.Received.IsZero() {
		w.Received = w.Done
	}
	if w.Name == "" && w.Body != nil && w.Verb == "create" {
		w.Name = w.Body.Name
	}
	return w
}

// managerOf returns the name that the API server uses for the request's field manager.
func managerOf(query url.Values, userAgent string) string {
	if manager := query.Get("fieldManager"); manager != "" {
		return manager
	}
	return program(userAgent)
}

// program returns the name of the program in a user agent.
func program(userAgent string) string {
	name, _, _ := strings.Cut(userAgent, "/")
	return name
}

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
