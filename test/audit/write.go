// SPDX-License-Identifier: Apache-2.0

// Package audit reads the writes from the audit log of an API server: the requests to
// change an object, and who made them. It reads logs of all levels; from level Request on
// it also returns the objects.
package audit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
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
	// User is the authenticated or impersonated user; Agent is the user agent.
	User, Agent string
	// Manager is the request's field manager, as in managedFields.
	Manager string
	// Code is the HTTP status of the response.
	Code int
	// Received and Done are the times at which the server received the request and
	// completed the response, by the server's clock.
	Received, Done time.Time
	// Request and Response are the objects in the bodies; nil if the log does not contain
	// them.
	Request, Response *Object
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

// Creates reports whether a write is to create its object.
func (w Write) Creates() bool { return w.Verb == "create" && w.Subresource == "" }

// Deletes reports whether a write is to delete its object.
func (w Write) Deletes() bool { return w.Verb == "delete" || w.Subresource == "eviction" }

// IsBackground reports whether a write is part of the constant background of a cluster, or
// changes no object.
func (w Write) IsBackground() bool {
	switch w.Path() {
	case "leases", "events", "nodes/status", "serviceaccounts/token",
		"pods/exec", "pods/attach", "pods/portforward", "pods/proxy":
		return true
	}
	return strings.HasSuffix(w.Resource, "reviews") && strings.HasPrefix(w.Group, "auth")
}

// event is the part of an audit.k8s.io Event that a Write is made from.
type event struct {
	Stage            string
	RequestURI       string
	Verb             string
	UserAgent        string
	User             struct{ Username string }
	ImpersonatedUser *struct{ Username string }
	ObjectRef        *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus   struct{ Code int }

	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
	RequestObject            json.RawMessage
	ResponseObject           json.RawMessage
}

// parse reads one line of the log. It returns nil for requests that change nothing: reads,
// dry runs, and requests without a response yet.
func parse(line []byte) (*Write, error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, fmt.Errorf("reading a line of the audit log: %w", err)
	}
	uri, err := url.ParseRequestURI(e.RequestURI)
	if err != nil || e.Stage == "" || e.Verb == "" || e.changes() && e.StageTimestamp.IsZero() {
		return nil, errors.New("reading a line of the audit log: this is not an event of audit.k8s.io")
	}
	query := uri.Query()
	if !e.changes() || query.Has("dryRun") {
		return nil, nil
	}
	return e.write(query), nil
}

// changes reports whether an event is the response to a request to change an object.
func (e *event) changes() bool {
	if e.ObjectRef == nil || e.Stage != "ResponseComplete" && e.Stage != "Panic" {
		return false
	}
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

func (e *event) write(query url.Values) *Write {
	w := &Write{
		Verb:        e.Verb,
		Group:       e.ObjectRef.APIGroup,
		Resource:    e.ObjectRef.Resource,
		Subresource: e.ObjectRef.Subresource,
		Namespace:   e.ObjectRef.Namespace,
		Name:        e.ObjectRef.Name,
		User:        e.User.Username,
		Agent:       e.UserAgent,
		Manager:     cmp.Or(query.Get("fieldManager"), program(e.UserAgent)), // as the API server derives it
		Code:        e.ResponseStatus.Code,
		Received:    e.RequestReceivedTimestamp,
		Done:        e.StageTimestamp,
		Request:     objectOf(e.RequestObject),
		Response:    objectOf(e.ResponseObject),
	}
	if e.ImpersonatedUser != nil {
		w.User = e.ImpersonatedUser.Username
	}
	if w.Name == "" && w.Creates() && w.Response != nil {
		w.Name = w.Response.Metadata.Name
	}
	return w
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
}

// objectOf returns nil for a body that is not an object, such as a JSON patch.
func objectOf(raw json.RawMessage) *Object {
	var o *Object
	if len(raw) == 0 || json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
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
