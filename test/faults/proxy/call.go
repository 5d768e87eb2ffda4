// SPDX-License-Identifier: Apache-2.0

// Calls: the record of each request.

package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Call is one request and its result.
type Call struct {
	Method string
	// Path includes the resourceVersion and sendInitialEvents of a watch, and no other
	// query.
	Path        string
	Namespace   string
	Resource    string
	Name        string
	Subresource string
	Watch       bool
	// Token is the bearer token that the client sent.
	Token string
	// Write numbers the writes to Foos and Deployments from 1. It is 0 for all other
	// requests.
	Write int
	Began time.Time
	// Code is the status code that the API server or a fault answered, or 0 before that.
	Code int
	// Version is the resourceVersion of the object in the answer. Unchanged is true if an
	// update left the object as it was.
	Version   string
	Unchanged bool
	// Abandoned is true if the client did not wait for the answer.
	Abandoned bool
	// Fault describes what the proxy did to the request, if anything.
	Fault string
	// Body is what a write sent, and Answer the answer to it.
	Body, Answer []byte
}

// IsWrite reports whether the request is a write.
func (c *Call) IsWrite() bool {
	return c.Method != http.MethodGet && c.Method != http.MethodHead && c.Method != http.MethodOptions
}

// IsWork reports whether the request is a write to a Foo or a Deployment.
func (c *Call) IsWork() bool {
	return c.IsWrite() && (c.Resource == "foos" || c.Resource == "deployments")
}

// Succeeded reports whether the request was answered with success.
func (c *Call) Succeeded() bool { return c.Code >= 200 && c.Code < 300 }

// Target names the object of the request: resource, name, subresource.
func (c *Call) Target() string {
	parts := []string{c.Resource}
	for _, part := range []string{c.Name, c.Subresource} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// Short returns method and target, which do not differ from run to run.
func (c *Call) Short() string { return c.Method + " " + c.Target() }

// String returns the request in one line.
func (c *Call) String() string {
	line := fmt.Sprintf("%s %-6s %s", c.Began.Format("15:04:05.000"), c.Method, c.Path)
	if c.Write > 0 {
		line += fmt.Sprintf("  write %d", c.Write)
	}
	if c.Code != 0 {
		line += fmt.Sprintf("  %d", c.Code)
	}
	if c.Version != "" {
		line += " rv=" + c.Version
	}
	if c.Unchanged {
		line += " (unchanged)"
	}
	if c.Fault != "" {
		line += "  ! " + c.Fault
	}
	return line
}

// newCall parses a request's URL and headers.
func newCall(r *http.Request) *Call {
	query := r.URL.Query()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	c := &Call{Method: r.Method, Path: r.URL.Path, Token: token, Watch: query.Get("watch") == "true" || query.Get("watch") == "1"}
	if c.Watch {
		c.Path += "?watch&resourceVersion=" + query.Get("resourceVersion")
		if query.Get("sendInitialEvents") == "true" {
			c.Path += "&sendInitialEvents"
		}
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch parts[0] {
	case "api":
		parts = parts[min(len(parts), 2):]
	case "apis":
		parts = parts[min(len(parts), 3):]
	default:
		return c
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		c.Namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&c.Resource, &c.Name, &c.Subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	return c
}
