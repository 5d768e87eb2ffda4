// SPDX-License-Identifier: Apache-2.0

// The hints that newproject prints at the end.

package main

import (
	"fmt"
	"strings"
)

// next are the next steps with a new project. A test checks that the functions it names
// are in the files it names.
const next = `
{{dir}} is a controller for {{Kinds}} ({{plural}}.{{group}}, {{version}}). {{git}}.

{{see}}Make it yours:
  {{types}}
                               {{Kind}}Spec: add a field there, then run hack/update-codegen.sh
  internal/plan/deployment.go  Deployment       a row: what the {{Kind}} owns
  children.go                  table            the rows, in order
  internal/plan/status.go      CalculateStatus  the {{Kind}}'s status
  docs/second-child.md adds a child to it step by step; docs/layout.md describes the rest.

Add new permissions, and new fields of the Deployment that the controller writes, to artifacts/deploy/permissions, too;
CONTRIBUTING.md has the rules. Check with
  go test ./...
  make test
`

// see is one of the next steps, unless the project is lean.
const see = `See it run (the first build compiles Kubernetes, which takes minutes):
  cd {{dir}}
  make demo

`

// sayNext prints the next steps.
func (m *maker) sayNext() {
	text := strings.Replace(next, "{{see}}", "", 1)
	if m.has("tools/demo/main.go") {
		text = strings.Replace(next, "{{see}}", see, 1)
	}
	types := "pkg/apis/" + m.Package + "/" + m.Version + "/types.go"
	fmt.Fprint(m.out, strings.NewReplacer("{{dir}}", m.dir, "{{Kinds}}", m.Kinds, "{{Kind}}", m.Kind, "{{plural}}", m.Plural,
		"{{group}}", m.Group, "{{version}}", m.Version, "{{git}}", m.hint, "{{types}}", types).Replace(text))
}
