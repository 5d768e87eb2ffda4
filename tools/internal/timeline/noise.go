// SPDX-License-Identifier: Apache-2.0

// Writes that are not drawn.

package timeline

import (
	"strings"

	"example.com/sample-controller/test/audit"
)

// noise returns a word for a write that is part of the constant background or changes no
// object, and "" for all others.
func noise(w audit.Write) string {
	switch w.Resource {
	case "leases":
		return "leases"
	case "events":
		return "events"
	case "nodes":
		if w.Subresource == "status" {
			return "heartbeats"
		}
	case "serviceaccounts":
		if w.Subresource == "token" {
			return "tokens"
		}
	case "pods":
		switch w.Subresource {
		case "exec", "attach", "portforward", "proxy":
			return "sessions in Pods"
		}
	}
	if strings.HasSuffix(w.Resource, "reviews") && strings.HasPrefix(w.Group, "auth") {
		return "reviews"
	}
	return ""
}

// controls reports whether a write is of a kind that only controllers make.
func controls(w audit.Write) bool {
	return w.Subresource == "status" || w.Resource == "events" || w.Resource == "leases"
}
