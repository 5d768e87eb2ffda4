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

// The timeline as text.

package main

import (
	"fmt"
	"io"
	"strings"

	"example.com/sample-controller/internal/audit"
)

// printWrites returns a function that prints each write as a line, in a namespace or, if that is empty, in all.
func printWrites(out io.Writer, namespace string) func(audit.Write) {
	return func(w audit.Write) {
		if !isNoise(w) && (namespace == "" || w.Namespace == namespace) {
			fmt.Fprintln(out, line(w))
		}
	}
}

// isNoise reports whether a write belongs to what goes on all the time: leases, events, tokens and permissions.
func isNoise(w audit.Write) bool {
	switch w.Resource {
	case "leases", "events", "tokenreviews", "subjectaccessreviews":
		return true
	}
	return w.Subresource == "token"
}

// line is a write as one line: when it was answered, who sent it, what it was, and the answer's code.
func line(w audit.Write) string {
	what := w.Resource
	if w.Subresource != "" {
		what += "/" + w.Subresource
	}
	return strings.TrimSpace(fmt.Sprintf("%s  %-26s %-7s %d  %-20s %s",
		w.Done.Format("15:04:05.000"), who(w), w.Verb, w.Code, what, w.Name))
}

// who is the controller, or the program where that has no identity of its own.
func who(w audit.Write) string {
	if strings.HasPrefix(w.User, "system:") {
		return w.User[strings.LastIndex(w.User, ":")+1:]
	}
	program, _, _ := strings.Cut(w.Agent, "/")
	return program
}
