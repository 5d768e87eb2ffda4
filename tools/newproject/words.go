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

// The spelling of words and identifiers.

package main

import (
	"regexp"
	"strings"
)

// speller writes text and identifiers with the new project's names in place of the
// sample's.
type speller struct {
	names
	program string // the program in Go identifiers and names of alerts: MyWidgets
}

func newSpeller(n names) speller {
	return speller{names: n, program: pascal(n.Program)}
}

var runOfLetters = regexp.MustCompile(`[A-Za-z0-9]+`)

// identifier returns the new spelling of a Go identifier.
func (s speller) identifier(name string) string {
	return runOfLetters.ReplaceAllStringFunc(name, func(run string) string { return s.run(run, true) })
}

// run returns the new spelling of a run of letters and digits. It replaces whole words,
// so Food stays. A single word in lower case is a variable in code, and a resource
// elsewhere.
func (s speller) run(run string, code bool) string {
	words := splitCamel(run)
	out := make([]string, len(words))
	for i := 0; i < len(words); i++ {
		before, after := "", ""
		if i > 0 {
			before = words[i-1]
		}
		if i+1 < len(words) {
			after = words[i+1]
		}
		switch {
		case strings.EqualFold(words[i], "sample") && after == "Controller":
			out[i] = s.programWord(words[i])
			i++
		case words[i] == capitalized(sample.Version) && before == sample.GoGroup:
			out[i] = s.title()
		default:
			out[i] = s.word(words[i], before, code || len(words) > 1)
			if i > 0 && out[i] != words[i] && strings.EqualFold(before, "a") {
				out[i-1] = before[:1] + article(s.Kind)[1:]
			}
		}
	}
	return strings.Join(out, "")
}

// programWord returns the program as a part of an identifier. In lower case it ends with
// Controller, because otherwise it would often equal the plural.
func (s speller) programWord(word string) string {
	if isUpper(word[0]) {
		return s.program
	}
	return strings.TrimSuffix(camel(s.program), "Controller") + "Controller"
}

// word returns the new spelling of one word.
func (s speller) word(word, before string, code bool) string {
	switch word {
	case "Foo":
		return s.Kind
	case "Foos":
		if before == "A" { // OfAFoosDeployment: the apostrophe is missing
			return s.Kind + "s"
		}
		return s.Kinds
	case "foo":
		if code {
			return camel(s.Kind)
		}
		return s.singular()
	case "foos":
		if code {
			return camel(s.Kinds)
		}
		return s.Plural
	case "FOO":
		return strings.ToUpper(s.Kind)
	case "FOOS":
		return strings.ToUpper(s.Kinds)
	case sample.GoGroup:
		return s.GoGroup
	}
	return s.joined(word)
}

// packageAlias matches the names of this project's versioned packages in imports.
var packageAlias = regexp.MustCompile(`^(typed|apply|apis|fake)?(sample|samplecontroller)?(v[0-9]+(?:(?:alpha|beta)[0-9]+)?)$`)

// joined returns the new spelling of words that are joined in lower case: package names,
// and anchors in documents.
func (s speller) joined(word string) string {
	if match := packageAlias.FindStringSubmatch(word); len(match) > 0 && match[1]+match[2] != "" {
		if match[2] != "" {
			match[2] = s.Package
		}
		return match[1] + match[2] + s.version(match[3])
	}
	rest, ok := strings.CutPrefix(word, sample.Package)
	if !ok {
		return word
	}
	if rest == "" {
		return s.Package
	}
	for _, of := range []struct{ from, to string }{{"foos", s.Plural}, {"foo", s.singular()}} {
		if tail, ok := strings.CutPrefix(rest, of.from); ok {
			return strings.ToLower(s.program) + of.to + tail
		}
	}
	return strings.ToLower(s.program) + rest
}

// version returns the new spelling of a version of the sample's group. Tests also use
// other versions of the group. If one of those is the new project's version, the two are
// swapped.
func (s speller) version(version string) string {
	switch version {
	case sample.Version:
		return s.Version
	case s.Version:
		return sample.Version
	}
	return version
}
