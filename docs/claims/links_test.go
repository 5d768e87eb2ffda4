// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	// link matches the target of a link or a picture, except on the network.
	link = regexp.MustCompile(`\]\(([^)\s:]+)\)`)
	// fenced matches a block, in which a # starts a comment.
	fenced = regexp.MustCompile("(?m)^ *```(?s:.*?)\n *```$")
	// heading matches a heading.
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// linked matches a link, which a heading may contain.
	linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestEachLinkLeadsSomewhere looks for the file and the heading of each link in a document.
func TestEachLinkLeadsSomewhere(t *testing.T) {
	found, known := 0, map[string]map[string]bool{}
	for _, document := range tracked(t, "*.md", ":!*testdata*") {
		for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, document), ""), -1) {
			found++
			file, anchor, _ := strings.Cut(match[1], "#")
			to := document
			if file != "" {
				to = filepath.Join(filepath.Dir(document), file)
			}
			if _, err := os.Stat(filepath.Join(moduleRoot, to)); err != nil {
				t.Errorf("%s links %s, which does not exist", document, match[1])
				continue
			}
			if anchor != "" && known[to] == nil {
				known[to] = anchors(t, to)
			}
			if anchor != "" && !known[to][anchor] {
				t.Errorf("%s links %s: there is no such heading", document, match[1])
			}
		}
	}
	if found < 100 {
		t.Errorf("found %d links, want more", found)
	}
}

// anchors returns the anchors of a document's headings, as GitHub makes them.
func anchors(t *testing.T, document string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, document), ""), -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, linked.ReplaceAllString(match[1], "$1"))] = true
	}
	return all
}
