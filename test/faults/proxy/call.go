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

package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Call is one request and what became of it.
type Call struct {
	Method string
	// Path has the query of a list or watch, but for what only client-go cares for.
	Path        string
	Namespace   string
	Resource    string
	Name        string
	Subresource string
	Watch       bool
	// Token is the bearer token that the client sent.
	Token string
	// Write numbers the writes from 1 on, those of events and Leases left out; 0
	// for others.
	Write int
	Began time.Time
	// Code is the API server's answer, or that of a fault; 0 where there is none yet.
	Code int
	// Version is the resourceVersion of the object in the answer, and Unchanged
	// tells that a write left it as it was.
	Version   string
	Unchanged bool
	// GivenUp tells that the client did not wait for the answer.
	GivenUp bool
	// Fault says what was done to it, if anything.
	Fault string
	// Body is what a write sent, and Answer what it got, cut to a size for reading.
	Body, Answer []byte
}

// IsWrite tells whether the request was to change something.
func (c *Call) IsWrite() bool {
	return c.Method != http.MethodGet && c.Method != http.MethodHead && c.Method != http.MethodOptions
}

// IsWork tells whether the request was to change a Foo or a Deployment.
func (c *Call) IsWork() bool {
	return c.IsWrite() && (c.Resource == "foos" || c.Resource == "deployments")
}

// Succeeded tells whether the API server has done what was asked.
func (c *Call) Succeeded() bool { return c.Code >= 200 && c.Code < 300 }

// Target names what the request was about: resource, name, subresource.
func (c *Call) Target() string {
	parts := []string{c.Resource}
	for _, part := range []string{c.Name, c.Subresource} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// Short is the request in a few words, without what differs from run to run.
func (c *Call) Short() string { return c.Method + " " + c.Target() }

// String is the request in a line.
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

// newCall reads a request's line.
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
