// SPDX-License-Identifier: Apache-2.0

// Builders of writes and objects for the tests.

package main

import (
	"encoding/json"
	"strings"
	"time"

	"example.com/sample-controller/internal/audit"
)

// narrated are the resources of these tests.
var narrated = []string{"foos.samplecontroller.k8s.io", "deployments.apps", "services", "replicasets.apps", "pods"}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func ms(n int) time.Time { return noon.Add(time.Duration(n) * time.Millisecond) }

// object parses an object, or returns nil for "".
func object(text string) *audit.Object {
	if text == "" {
		return nil
	}
	var o audit.Object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(text + ": " + err.Error())
	}
	return &o
}

// write returns a write, such as "update deployments/status", that the server received at
// noon and completed 2 ms later. response is the object in the response.
func write(what, response string) audit.Write {
	verb, path, _ := strings.Cut(what, " ")
	w := audit.Write{
		Verb: verb, Namespace: "default", Name: "web", Code: 200, User: "admin", Manager: "kubectl",
		Received: noon, Done: ms(2), Response: object(response),
	}
	w.Resource, w.Subresource, _ = strings.Cut(path, "/")
	w.Group = map[string]string{"foos": "samplecontroller.k8s.io", "deployments": "apps", "replicasets": "apps"}[w.Resource]
	if verb == "create" {
		w.Code = 201
		if w.Response != nil && w.Subresource == "" {
			w.Response.Kind = map[string]string{"foos": "Foo", "deployments": "Deployment", "services": "Service", "pods": "Pod"}[w.Resource]
		}
	}
	return w
}

// edited returns a write after an edit.
func edited(w audit.Write, edit func(*audit.Write)) audit.Write {
	edit(&w)
	return w
}
