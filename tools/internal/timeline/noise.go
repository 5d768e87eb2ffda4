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

// Writes that are not drawn.

package timeline

import (
	"strings"

	"example.com/sample-controller/internal/audit"
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
