// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"go/scanner"
	"go/token"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// unwanted matches what a native writer would not write, or what the style guide of Kubernetes
// advises against.
var unwanted = regexp.MustCompile(`(?i)(^|[\s(])(` + strings.Join([]string{
	"otherwise than", "something else than", "(as|than) asked", "what an? \\w+ owns", "existence of its own", "decides? over",
	"under way", "for ever", "in turns", "(made|makes?|making) (again|anew)", "(given|gives?|giving) back", "(is|are) told",
	"somebody", "anybody", "nobody", "please (note|see|use)", "folders?", "nevertheless", "in place of",
	"(behavi|col|fav|hon|neighb)our\\w*", "(cancel|label|model)l(ed|ing)", "(initiali|organi|recogni)s\\w+",
}, "|") + `|[0-9]+ %)([\s.,;:?!)'"]|$)`)

// TestProse fails if one of them comes back to a document, a comment or a message.
func TestProse(t *testing.T) {
	for _, file := range tracked(t, "README.md", "CONTRIBUTING.md", "docs/*.md", ":!docs/faults.md", // it quotes
		":(glob)*.go", "internal/*.go", "tools/*.go") {
		text := read(t, file)
		if strings.HasSuffix(file, ".go") {
			text = proseOf(text)
		}
		for i, line := range strings.Split(text, "\n") {
			if word := strings.TrimSpace(unwanted.FindString(line)); word != "" {
				t.Errorf("%s:%d: %q: see how others say that", file, i+1, word)
			}
		}
	}
}

// tracked returns the files that git tracks and that match one of the patterns.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", append([]string{"ls-files"}, patterns...)...)
	list.Dir = moduleRoot
	files, err := list.Output()
	return strings.Fields(string(must(t, files, err)))
}

// proseOf returns the comments and strings of a Go file, in their lines.
func proseOf(source string) string {
	var prose strings.Builder
	var scan scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	scan.Init(file, []byte(source), nil, scanner.ScanComments)
	for line := 1; ; {
		pos, kind, literal := scan.Scan()
		switch kind {
		case token.EOF:
			return prose.String()
		case token.COMMENT, token.STRING:
			prose.WriteString(strings.Repeat("\n", file.Line(pos)-line) + " " + literal)
			line = file.Line(pos) + strings.Count(literal, "\n")
		}
	}
}
