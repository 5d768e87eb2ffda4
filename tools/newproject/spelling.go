// SPDX-License-Identifier: Apache-2.0

// The new spelling of each place where the sample's names occur, and of files.

package main

import (
	"fmt"
	"go/format"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// speller writes files with a project's names in place of the sample's.
type speller struct {
	names
	// Other spellings, for regular ones that are taken: suffixed adds Resource to the kind
	// in unexported identifiers, longAlias adds api to the name of the imported API.
	suffixed, longAlias bool
	// unexported are the unexported identifiers of the Go code with the kind in them. Comments
	// and documents spell them as the code does, except foo and foos, which are resources
	// there.
	unexported map[string]bool
	// first spells the names of packages that all kinds share, in code of an added kind.
	first *speller
}

// shared are the ends of the names of such packages in imports: fooinformers.
var shared = []string{"informers", "listers", "scheme", "fake", "test"}

// place is a match of a pattern, with what surrounds it.
type place struct {
	match          string
	groups         []string // of the pattern
	before, after  byte     // 0 at the beginning and at the end
	inCode, hidden bool     // whether it is in an identifier of Go code, and in an unexported one
}

// pattern matches a name of the sample.
type pattern struct {
	expression string
	spell      func(s speller, at place) string
}

// patterns are tried in this order. A test has an example for each.
var patterns = []pattern{
	// Kubernetes' own sample. findTraces reports it.
	{`(?:kubernetes|k8s\.io)/sample-controller`, func(_ speller, at place) string { return at.match }},
	{`example\.com/sample-controller`, func(s speller, at place) string {
		if at.before == '.' || at.before == '-' { // registry.example.com
			return "example.com/" + s.Program
		}
		return s.Module
	}},
	{`com\.example\.sample-controller`, func(s speller, _ place) string { return s.modelPackage() }},
	// The group, perhaps in a regular expression, perhaps with a version.
	{`samplecontroller(\\*)\.k8s\\*\.io(/?)(v[0-9]\w*)?`, func(s speller, at place) string {
		return strings.ReplaceAll(s.Group, ".", at.groups[0]+".") + at.groups[1] + s.version(at.groups[2])
	}},
	// The group's package, and its methods in the clients, with a version.
	{`samplecontroller([/.])(v[0-9]\w*)`, func(s speller, at place) string { return s.Package + at.groups[0] + s.version(at.groups[1]) }},
	{`Samplecontroller((?:\(\)\.)?)(V1alpha1)?`, func(s speller, at place) string {
		if at.groups[1] == "" {
			return s.GoGroup + at.groups[0]
		}
		return s.GoGroup + at.groups[0] + capitalized(s.Version)
	}},
	{`alert-samplecontroller`, func(s speller, _ place) string { return "alert-" + strings.ToLower(pascal(s.Program)) }},
	{`samplecontroller`, func(s speller, _ place) string { return s.Package }},
	{`sample(v[0-9]\w*)`, func(s speller, at place) string {
		if s.longAlias {
			return s.Package + "api" + s.version(at.groups[0])
		}
		return s.Package + s.version(at.groups[0])
	}},
	{`sample-controller`, func(s speller, _ place) string { return s.Program }},
	{`sample_controller`, func(s speller, _ place) string { return strings.ReplaceAll(s.Program, "-", "_") }},
	{`Sample [Cc]ontroller`, func(s speller, _ place) string { return s.programTitle() }},
	{`sample controller`, func(s speller, _ place) string { return strings.ToLower(s.programTitle()) }},
	{`SampleController`, func(s speller, _ place) string { return pascal(s.Program) }},
	// With Controller at the end, because otherwise it would often equal the plural.
	{`sampleController`, func(s speller, _ place) string {
		return strings.TrimSuffix(camel(pascal(s.Program)), "Controller") + "Controller"
	}},
	{`v[0-9]+(?:alpha|beta)[0-9]+`, func(s speller, at place) string {
		if at.before == '/' && !at.inCode { // of another project's group
			return at.match
		}
		return s.version(at.match)
	}},
	{`\bfo\b`, func(s speller, _ place) string { return s.shortest() }},
	{"\\b([Aa])([ `\"*]+)Foo\\b", func(s speller, at place) string {
		if strings.IndexByte("AEIO", s.Kind[0]) >= 0 {
			at.groups[0] += "n"
		}
		return at.groups[0] + at.groups[1] + s.Kind
	}},
	{`(Foo|FOO|foo)(s|S\b)?([a-z]*)`, speller.kind},
}

// english matches words that only look like the sample's kind.
var english = regexp.MustCompile(`(?i)^foo(ds?|t|ter|tprint|tnote|l|lish|lproof)$`)

// kind returns the new spelling of Foo or Foos at the place.
func (s speller) kind(at place) string {
	word, plural, tail := at.groups[0], at.groups[1] != "", at.groups[2]
	if english.MatchString(at.match) {
		return at.match
	}
	if s.first != nil && slices.Contains(shared, tail) {
		return s.first.kind(at)
	}
	kind, kinds, lower, lowers := s.Kind, s.Kinds, s.singular(), s.Plural
	if s.suffixed && at.hidden {
		kind, kinds = s.Kind+"Resource", s.Kind+"Resources"
	}
	switch isVariable := at.inCode && !isLetter(at.before); {
	case word == "FOO":
		kind, kinds = strings.ToUpper(s.Kind), strings.ToUpper(s.Kinds)
	case word == "Foo":
	case tail == "" && (isVariable || isUpper(at.after)):
		kind, kinds = camel(kind), camel(kinds)
	default:
		kind, kinds = lower, lowers
	}
	if plural {
		return kinds + tail
	}
	return kind + tail
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

// programTitle returns the program as a title: Widget Controller.
func (s speller) programTitle() string {
	words := strings.Split(s.Program, "-")
	for i := range words {
		words[i] = capitalized(words[i])
	}
	return strings.Join(words, " ")
}

// oldNames matches all patterns. A pattern is a group, and its own groups follow.
var oldNames = func() *regexp.Regexp {
	all := make([]string, 0, len(patterns))
	for _, p := range patterns {
		all = append(all, "("+p.expression+")")
	}
	return regexp.MustCompile(strings.Join(all, "|"))
}()

// groupsOf are the numbers of the patterns' groups, and of the one after the last.
var groupsOf = func() []int {
	numbers := []int{1}
	for i, p := range patterns {
		numbers = append(numbers, numbers[i]+1+regexp.MustCompile(p.expression).NumSubexp())
	}
	return numbers
}()

// text returns a text with the new names.
func (s speller) text(text string) string { return s.spell(text, false) }

// spell spells line by line, because most lines have no name, which is found out faster.
func (s speller) spell(text string, inCode bool) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if hasHint(line) {
			line = s.line(line, inCode)
		}
		out.WriteString(line)
	}
	return out.String()
}

// hasHint reports whether a line may contain a name.
func hasHint(line string) bool {
	for _, hint := range []string{"foo", "Foo", "FOO", "ample", "alpha", "beta"} {
		if strings.Contains(line, hint) {
			return true
		}
	}
	return strings.Contains(line, sample.Short) && shortName.MatchString(line)
}

var shortName = regexp.MustCompile(`\b` + sample.Short + `\b`)

// line spells a line.
func (s speller) line(text string, inCode bool) string {
	var out strings.Builder
	end := 0
	for _, found := range oldNames.FindAllStringSubmatchIndex(text, -1) {
		identifier := identifierAround(text, found[0], found[1])
		at := place{match: text[found[0]:found[1]], inCode: inCode || s.unexported[identifier]}
		at.hidden = at.inCode && !isUpper(identifier[0])
		if found[0] > 0 {
			at.before = text[found[0]-1]
		}
		if found[1] < len(text) {
			at.after = text[found[1]]
		}
		out.WriteString(text[end:found[0]])
		end = found[1]
		for i, p := range patterns {
			if found[2*groupsOf[i]] < 0 {
				continue
			}
			for group := groupsOf[i] + 1; group < groupsOf[i+1]; group++ {
				at.groups = append(at.groups, text[max(0, found[2*group]):max(0, found[2*group+1])])
			}
			out.WriteString(p.spell(s, at))
		}
	}
	return out.String() + text[end:]
}

// identifierAround returns the identifier that contains a match.
func identifierAround(text string, begin, end int) string {
	for begin > 0 && isInIdentifier(text[begin-1]) {
		begin--
	}
	for end < len(text) && isInIdentifier(text[end]) {
		end++
	}
	return text[begin:end]
}

func isInIdentifier(c byte) bool { return isLetter(c) || c == '_' || c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || isUpper(c) }

// identifier returns the new spelling of a Go identifier.
func (s speller) identifier(name string) string { return s.spell(name, true) }

// goFile returns a Go file with the new names, formatted.
func (s speller) goFile(name string, source []byte) ([]byte, error) {
	text := s.spellGo(string(source))
	if strings.HasPrefix(name, "pkg/apis/") {
		text = s.markers(text)
	}
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s, with the new names: %w", name, err)
	}
	return formatted, nil
}

// spellGo returns Go code with the new names. In strings and comments, a name in lower
// case is the resource; elsewhere it is a variable.
func (s speller) spellGo(source string) string {
	var scan scanner.Scanner
	var out strings.Builder
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(source))
	scan.Init(file, []byte(source), nil, scanner.ScanComments)
	end := 0
	for {
		pos, kind, literal := scan.Scan()
		if kind == token.EOF {
			break
		}
		if kind != token.STRING && kind != token.COMMENT {
			continue
		}
		begin := file.Offset(pos)
		out.WriteString(s.spell(source[end:begin], true) + s.text(literal))
		end = begin + len(literal)
	}
	out.WriteString(s.spell(source[end:], true))
	return out.String()
}

// Markers of the generators that need more than new names.
var (
	resourceMarker = regexp.MustCompile(`(?m)^// \+kubebuilder:resource:`)
	approvalMarker = regexp.MustCompile(`(?m)^// \+kubebuilder:metadata:annotations="api-approved\.kubernetes\.io=.*\n`)
	groupMarker    = regexp.MustCompile(`(?m)^// \+groupName=.*$`)
)

// markers adds the plural, and the group as a Go identifier if it is not the capitalized
// first label. It removes a short name that the project does not have, and the approval
// that only groups of Kubernetes need.
func (s speller) markers(text string) string {
	text = approvalMarker.ReplaceAllString(text, "")
	text = resourceMarker.ReplaceAllString(text, "${0}path="+s.Plural+",")
	if s.Short == "" {
		text = strings.Replace(text, ",shortName="+s.shortest()+",", ",", 1)
	}
	if label, _, _ := strings.Cut(s.Group, "."); capitalized(label) != s.GoGroup {
		text = groupMarker.ReplaceAllString(text, "$0\n// +groupGoName="+s.GoGroup)
	}
	return text
}

// goMod returns a go.mod with the new names. The version of a module that is replaced by
// a folder must have the major version of its path.
func (s speller) goMod(source []byte) []byte {
	text := s.text(string(source))
	if _, major := splitMajor(s.Module); major != "" {
		text = strings.ReplaceAll(text, s.Module+" v0.0.0-", s.Module+" "+major+".0.0-")
	}
	return []byte(text)
}

// rename returns files with the new names, also in their paths.
func (s speller) rename(files []treeFile) ([]treeFile, error) {
	renamed := make([]treeFile, 0, len(files))
	seen := map[string]bool{}
	for _, file := range files {
		var err error
		switch {
		case path.Ext(file.path) == ".go":
			file.data, err = s.goFile(file.path, file.data)
		case path.Base(file.path) == "go.mod":
			file.data = s.goMod(file.data)
		case path.Base(file.path) != "go.sum" && file.isText():
			file.data = []byte(s.text(string(file.data)))
		}
		if file.path = s.text(file.path); seen[file.path] {
			err = fmt.Errorf("two files would have the path %s: choose another kind, group or module", file.path)
		}
		if err != nil {
			return nil, err
		}
		seen[file.path] = true
		renamed = append(renamed, file)
	}
	return renamed, nil
}
