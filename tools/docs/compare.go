// SPDX-License-Identifier: Apache-2.0

// Comparison of what a block printed with the document.

package docs

import (
	"regexp"
	"slices"
	"strings"
)

// kinds are the parts of a line that differ from run to run, and a placeholder for each.
// The order matters: an RFC 3339 time contains numbers that later patterns would match.
var kinds = []struct {
	pattern *regexp.Regexp
	as      string
}{
	// klog's header, except for severity and file.
	{regexp.MustCompile(`\b([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ([\w.]+):\d+\]`), "$1<time> $2]"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`), "<time>"},
	{regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}`), "<time>"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?\b`), "<time>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\bsha256:[0-9a-f]{64}\b`), "<digest>"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "<commit>"},
	// Generated suffixes in the names of ReplicaSets and their Pods.
	{regexp.MustCompile(`([a-z0-9])-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "$1-<hash>-<suffix>"},
	{regexp.MustCompile(`([a-z0-9])-[bcdfghjklmnpqrstvwxz2456789]{6,10}\b`), "$1-<hash>"},
	{regexp.MustCompile(`\b(\d{1,3}(?:\.\d{1,3}){3}|localhost|\[::1?\]):\d+\b`), "$1:<port>"},
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`), "<ip>"},
	{regexp.MustCompile(`\bresourceVersion: "\d+"`), "resourceVersion: <version>"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (ns|µs|us|ms|s|min|seconds?|minutes?|hours?)\b`), "<duration>"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ns|µs|us|ms|s|m|h|d|y))+\b`), "<duration>"},
}

// anything in a document matches any text.
const anything = "…"

// wanted is a line of a document that must be printed.
type wanted struct {
	line int // in the document
	text string
}

// wantedLines returns the lines of a block, except empty ones and those that stand for any
// others.
func wantedLines(text string, first int) []wanted {
	var lines []wanted
	for i, line := range strings.Split(text, "\n") {
		if squeezed := squeeze(line); squeezed != "" && squeezed != anything {
			lines = append(lines, wanted{first + i, line})
		}
	}
	return lines
}

// compare returns the first wanted line that was not printed in its place, or nil if the
// output is correct.
func compare(printed string, want []wanted, anyOrder bool) *wanted {
	lines := strings.Split(printed, "\n")
	for i := range want {
		found := slices.IndexFunc(lines, func(line string) bool { return matches(want[i].text, line) })
		switch {
		case found < 0:
			return &want[i]
		case anyOrder:
			lines = slices.Delete(lines, found, found+1)
		default:
			lines = lines[found+1:]
		}
	}
	return nil
}

// squeeze replaces white space by single spaces, and removes it at both ends.
func squeeze(line string) string {
	return strings.Join(strings.Fields(line), " ")
}

// matches reports whether a printed line matches a line of a document.
func matches(document, printed string) bool {
	document, printed = squeeze(document), squeeze(printed)
	return wildcard(document, printed) || wildcard(alike(document), alike(printed))
}

// alike replaces the parts that differ from run to run by placeholders.
func alike(line string) string {
	for _, kind := range kinds {
		line = kind.pattern.ReplaceAllString(line, kind.as)
	}
	return line
}

// wildcard compares two lines. A … in the first matches any text.
func wildcard(document, printed string) bool {
	parts := strings.Split(document, anything)
	if len(parts) == 1 {
		return document == printed
	}
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(printed)
}
