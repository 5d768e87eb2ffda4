// SPDX-License-Identifier: Apache-2.0

// The output of -text: a line for each write.

package main

import (
	"fmt"
	"io"
	"strings"

	"example.com/sample-controller/internal/audit"
	"example.com/sample-controller/tools/internal/printable"
)

// printWrites returns a function that prints a write as a line if it is in the namespace;
// an empty namespace means all.
func printWrites(out io.Writer, namespace string) func(audit.Write) {
	return func(w audit.Write) {
		if !isNoise(w) && (namespace == "" || w.Namespace == namespace) {
			fmt.Fprintln(out, line(w))
		}
	}
}

// isNoise reports whether a write is part of the constant background: leases, events,
// tokens and permission reviews.
func isNoise(w audit.Write) bool {
	switch w.Resource {
	case "leases", "events", "tokenreviews", "subjectaccessreviews":
		return true
	}
	return w.Subresource == "token"
}

// line formats a write as one line: the time of the response, the actor, the request and
// the response code.
func line(w audit.Write) string {
	what := w.Resource
	if w.Subresource != "" {
		what += "/" + w.Subresource
	}
	// Whoever sends a request chooses its user agent and names, even if it is refused.
	return strings.TrimSpace(printable.Quote(fmt.Sprintf("%s  %-26s %-7s %d  %-20s %s",
		w.Done.Format("15:04:05.000"), who(w), w.Verb, w.Code, what, w.Name)))
}

// who returns the controller, or the program if the controller has no identity of its
// own.
func who(w audit.Write) string {
	if strings.HasPrefix(w.User, "system:") {
		return w.User[strings.LastIndex(w.User, ":")+1:]
	}
	program, _, _ := strings.Cut(w.Agent, "/")
	return program
}
