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

// Writing texts with the new names.

package main

import (
	"regexp"
	"strings"
)

// manner is the kind of a text.
type manner int

const (
	prose   manner = iota // documents, manifests, scripts, strings of Go code
	comment               // of Go code: a name in lower case may be a variable
)

// pattern matches several words that are replaced together.
type pattern struct {
	expression *regexp.Regexp
	spell      func(s speller, match []string) string
}

// patterns are tried in this order at the start of each word. Their first group, if any,
// is passed to the spelling.
var patterns = []pattern{
	// Names of Kubernetes' own sample stay. findTraces then reports them, so that
	// somebody decides how to reword the text.
	{regexp.MustCompile(`^(?:kubernetes|k8s\.io)/sample-controller`), func(_ speller, match []string) string { return match[0] }},
	{regexp.MustCompile(`^example\.com/sample-controller`), func(s speller, _ []string) string { return s.Module }},
	{regexp.MustCompile(`^com\.example\.sample-controller`), func(s speller, _ []string) string { return s.modelPackage() }},
	// The group, plain or in a regular expression, perhaps with a version.
	{regexp.MustCompile(`^samplecontroller(\\*)\.k8s\\*\.io((?:/v[0-9]\w*)?)`), func(s speller, match []string) string {
		return strings.ReplaceAll(s.Group, ".", match[1]+".") + s.afterSlash(match[2])
	}},
	// The group's package with a version.
	{regexp.MustCompile(`^samplecontroller([/.])(v[0-9]\w*)`), func(s speller, match []string) string {
		return s.Package + match[1] + s.version(match[2])
	}},
	{regexp.MustCompile(`^sample-controller`), func(s speller, _ []string) string { return s.Program }},
	{regexp.MustCompile(`^sample_controller`), func(s speller, _ []string) string { return strings.ReplaceAll(s.Program, "-", "_") }},
	{regexp.MustCompile(`^([Ss])ample [Cc]ontroller\b`), func(s speller, match []string) string {
		if match[1] == "s" {
			return strings.ReplaceAll(s.Program, "-", " ")
		}
		return s.programTitle()
	}},
	{regexp.MustCompile("^([Aa])([\\s`\"'*_#/]+)([Ff]oo)\\b"), func(s speller, match []string) string {
		return match[1] + article(s.Kind)[1:] + match[2] + s.word(match[3], "", false)
	}},
	{regexp.MustCompile(`^v[0-9]+(?:alpha|beta)[0-9]+\b`), func(s speller, match []string) string { return s.version(match[0]) }},
}

// afterSlash returns the new spelling of /VERSION.
func (s speller) afterSlash(version string) string {
	if version == "" {
		return ""
	}
	return "/" + s.version(version[1:])
}

// programTitle returns the program as a title: Widget Controller.
func (s speller) programTitle() string {
	words := strings.Split(s.Program, "-")
	for i := range words {
		words[i] = capitalized(words[i])
	}
	return strings.Join(words, " ")
}

// firstLetters are the letters with which matches of the patterns begin.
const firstLetters = "kecsSAav"

// isForeign reports whether the version at a place of the text belongs to another
// project's group.
func isForeign(text string, at int) bool {
	return at > 1 && text[at-1] == '/' && isLetterOrDigit(text[at-2])
}

// text returns a text with the new names. Columns that are separated by two or more
// spaces keep their places if there is enough room.
func (s speller) text(text string, as manner) string {
	var out strings.Builder
	line := &columns{}
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c == '\\' && at+1 < len(text) && strings.IndexByte(`abfnrtv\"'`, text[at+1]) >= 0:
			out.WriteString(text[at : at+2]) // an escape sequence, not the beginning of a word
			at += 2
		case c == ' ':
			end := at + len(text[at:]) - len(strings.TrimLeft(text[at:], " "))
			out.WriteString(strings.Repeat(" ", line.gap(end-at)))
			at = end
		case isLetterOrDigit(c):
			old, spelled := s.next(text, at, as)
			line.grow(len(spelled) - len(old))
			out.WriteString(spelled)
			at += len(old)
		default:
			line.read(c)
			out.WriteByte(c)
			at++
		}
	}
	return out.String()
}

// next returns the old text that begins at a place, and its new spelling.
func (s speller) next(text string, at int, as manner) (string, string) {
	for _, p := range patterns {
		if strings.IndexByte(firstLetters, text[at]) < 0 {
			break
		}
		match := p.expression.FindStringSubmatch(text[at:])
		if len(match) == 0 || text[at] == 'v' && isForeign(text, at) {
			continue
		}
		if strings.HasPrefix(match[0], "example.com/") && at > 0 && strings.IndexByte(".-", text[at-1]) >= 0 {
			continue // registry.example.com
		}
		return match[0], p.spell(s, match)
	}
	run := runOfLetters.FindString(text[at:])
	return run, s.run(run, as == comment && isVariable(text[:at], text[at+len(run):]))
}

// resourceVerbs matches the end of a text after which a kind in lower case is a resource,
// as after a verb of kubectl.
var resourceVerbs = regexp.MustCompile(`(?:[-/.=:"'_]|\b(?:get|scale|describe|delete|annotate|explain|wait) )$`)

// isVariable guesses whether a word of a comment in Go is a variable.
func isVariable(before, after string) bool {
	tail := before[max(0, len(before)-12):]
	return !resourceVerbs.MatchString(tail) && !strings.HasPrefix(after, "-") && !strings.HasPrefix(after, "/")
}

func isLetterOrDigit(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// columns keeps the text after two or more spaces at its place in the line.
type columns struct {
	grown   int  // the number of characters that the line has grown
	started bool // whether the line has text
}

func (c *columns) grow(by int) { c.grown, c.started = c.grown+by, true }

func (c *columns) read(char byte) {
	if char == '\n' {
		*c = columns{}
		return
	}
	c.started = c.started || char != '\t'
}

// gap returns the number of spaces to write in place of the old ones.
func (c *columns) gap(spaces int) int {
	if !c.started || spaces < 2 {
		return spaces
	}
	now := max(2, spaces-c.grown)
	c.grown += now - spaces
	return now
}
