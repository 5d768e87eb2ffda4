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

// The generators' markers in comments.

package main

import (
	"regexp"
	"strings"
)

// Markers that need more than new names.
var (
	resourceMarker = regexp.MustCompile(`(?m)^// \+kubebuilder:resource:(.*)$`)
	approvalMarker = regexp.MustCompile(`(?m)^// \+kubebuilder:metadata:annotations="api-approved\.kubernetes\.io=.*\n`)
	groupMarker    = regexp.MustCompile(`(?m)^// \+groupName=(.*)$`)
)

// markers fixes the markers in a comment that already has the new names: the plural, the
// short name, the approval that only groups of Kubernetes need, and a group that is not a
// Go identifier.
func (s speller) markers(comment string) string {
	comment = approvalMarker.ReplaceAllString(comment, "")
	comment = resourceMarker.ReplaceAllStringFunc(comment, func(line string) string {
		fields := []string{"path=" + s.Plural}
		for field := range strings.SplitSeq(resourceMarker.FindStringSubmatch(line)[1], ",") {
			switch {
			case field != "shortName="+sample.Short:
				fields = append(fields, field)
			case s.Short != "":
				fields = append(fields, "shortName="+s.Short)
			}
		}
		return "// +kubebuilder:resource:" + strings.Join(fields, ",")
	})
	label, _, _ := strings.Cut(s.Group, ".")
	if capitalized(label) == s.GoGroup {
		return comment
	}
	return groupMarker.ReplaceAllString(comment, "$0\n// +groupGoName="+s.GoGroup)
}
