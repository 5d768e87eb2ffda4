// SPDX-License-Identifier: Apache-2.0

// The rules that turn the sample's names into a project's names.
//
// Renaming takes two steps. The first replaces each name with a slot, independently of any
// project. The second fills the slots. In between, the files show whether a name was missed, and
// which identifiers a new name must not equal.

package main

import (
	"cmp"
	"fmt"
	"go/format"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// spelling holds a project's names, and how to spell them where the regular spelling is taken:
// suffixed adds Resource to the kind in unexported identifiers, longAlias adds api to the name
// of the imported API.
type spelling struct {
	names

	suffixed, longAlias bool
}

// slots lists all spellings of the names that differ between projects. In a file, a slot is a
// letter that nothing else uses, so that Go code with slots is still Go code.
var slots = []struct {
	name string
	fill func(s spelling) string
}{
	{"Upstream", func(spelling) string { return "sample-controller" }}, // a trace: see oldName
	{"Module", func(s spelling) string { return s.Module }},
	{"Major", func(s spelling) string { return s.major() }},
	{"Model", func(s spelling) string { return s.modelPackage() }},
	{"program", func(s spelling) string { return s.Program }},
	{"pro_gram", func(s spelling) string { return strings.ReplaceAll(s.Program, "-", "_") }},
	{"ProGram", func(s spelling) string { return pascal(s.Program) }},
	{"proGram", func(s spelling) string { return strings.TrimSuffix(camel(pascal(s.Program)), "Controller") }},
	{"Pro Gram", func(s spelling) string { return titled(s.Program) }},
	{"pro gram", func(s spelling) string { return strings.ToLower(titled(s.Program)) }},
	{"anchor", func(s spelling) string { return strings.ToLower(pascal(s.Program)) }},
	{"Group", func(s spelling) string { return s.Group }},
	{"package", func(s spelling) string { return s.Package }},
	{"GoGroup", func(s spelling) string { return s.GoGroup }},
	{"GoGroupMarker", spelling.goGroupMarker},
	{"alias", spelling.alias},
	{"version", func(s spelling) string { return s.Version }},
	{"Version", func(s spelling) string { return capitalized(s.Version) }},
	// Other versions of the group, in tests.
	{"v1", func(s spelling) string { return s.otherVersion("v1") }},
	{"v1beta1", func(s spelling) string { return s.otherVersion("v1beta1") }},
	{"Kind", func(s spelling) string { return s.Kind }},
	{"Kinds", func(s spelling) string { return s.Kinds }},
	{"KIND", func(s spelling) string { return strings.ToUpper(s.Kind) }},
	{"kind", func(s spelling) string { return s.Singular() }},
	{"kinds", func(s spelling) string { return s.Plural }},
	{"kindName", func(s spelling) string { return camel(s.Kind) }},
	{"kindsName", func(s spelling) string { return camel(s.Kinds) }},
	// The kind in unexported identifiers.
	{"hiddenKind", func(s spelling) string { return s.suffix(s.Kind, s.Kind, "Resource") }},
	{"hiddenKinds", func(s spelling) string { return s.suffix(s.Kinds, s.Kind, "Resources") }},
	{"hiddenName", func(s spelling) string { return camel(s.suffix(s.Kind, s.Kind, "Resource")) }},
	{"hiddenNames", func(s spelling) string { return camel(s.suffix(s.Kinds, s.Kind, "Resources")) }},
	{"short", func(s spelling) string { return cmp.Or(s.Short, s.Singular()) }},
	{"ShortMarker", spelling.shortMarker},
	{"article", func(s spelling) string { return "a" + s.n() }},
	{"Article", func(s spelling) string { return "A" + s.n() }},
	{"oo", func(spelling) string { return "oo" }}, // of English words
}

// firstSlot is the letter of the first slot, in the Lisu script; the others follow.
const firstSlot = 'ꓐ'

// hiddenSlots are the slots in unexported identifiers.
var hiddenSlots = func() (letters string) {
	for i, slot := range slots {
		if strings.HasPrefix(slot.name, "hidden") {
			letters += string(firstSlot + rune(i))
		}
	}
	return letters
}()

// goGroupMarker is needed if the group as an identifier is not the capitalized first label.
func (s spelling) goGroupMarker() string {
	if label, _, _ := strings.Cut(s.Group, "."); capitalized(label) == s.GoGroup {
		return ""
	}
	return "\n// +groupGoName=" + s.GoGroup
}

func (s spelling) shortMarker() string {
	if s.Short == "" {
		return ""
	}
	return "shortName=" + s.Short + ","
}

func (s spelling) alias() string {
	if s.longAlias {
		return s.Package + "api" + s.Version
	}
	return s.Package + s.Version
}

// otherVersion returns another version of the group. If it is the project's, the two are
// swapped.
func (s spelling) otherVersion(version string) string {
	if version == s.Version {
		return sample.Version
	}
	return version
}

func (s spelling) suffix(regular, kind, suffix string) string {
	if s.suffixed {
		return kind + suffix
	}
	return regular
}

// n returns "n" if the article before the kind is "an".
func (s spelling) n() string {
	if strings.IndexByte("AEIO", s.Kind[0]) >= 0 {
		return "n"
	}
	return ""
}

// replacement replaces the matches of an expression.
type replacement struct {
	expression *regexp.Regexp
	by         string
}

// replacements takes pairs of an expression and its replacement, with {slots}.
func replacements(pairs ...string) []replacement {
	var all []replacement
	for i := 0; i < len(pairs); i += 2 {
		by := pairs[i+1]
		for number, slot := range slots {
			by = strings.ReplaceAll(by, "{"+slot.name+"}", string(firstSlot+rune(number)))
		}
		all = append(all, replacement{regexp.MustCompile(pairs[i]), by})
	}
	return all
}

func replaceAll(text string, all []replacement) string {
	for _, r := range all {
		text = r.expression.ReplaceAllString(text, r.by)
	}
	return text
}

// The replacements, in order: first those for all texts, then those for the kind, whose spelling
// is different in Go identifiers.
var (
	inAll = replacements(
		`(kubernetes|k8s\.io)/sample-controller`, "${1}/{Upstream}", // Kubernetes' own sample
		`([.-])example\.com/sample-controller`, "${1}example.com/{program}", // registry.example.com
		// The version of a module that is replaced by a directory has the path's major version.
		`example\.com/sample-controller v0\.0\.0-`, "{Module} {Major}.0.0-",
		`example\.com/sample-controller`, "{Module}",
		`com\.example\.sample-controller`, "{Model}",
		// Only Kubernetes' own groups need an approval.
		`(?m)^// \+kubebuilder:metadata:annotations="api-approved\.kubernetes\.io=unapproved, experimental-only.*\n`, "",
		`(?m)^(// \+groupName=)samplecontroller\.k8s\.io$`, "${1}{Group}{GoGroupMarker}",
		`(\+kubebuilder:resource:)shortName=fo,`, "${1}path={kinds},{ShortMarker}",
		`samplecontroller\.k8s\.io/v1alpha1`, "{Group}/{version}",
		`samplecontroller\.k8s\.io/v1\b`, "{Group}/{v1}",
		`samplecontroller\.k8s\.io/v1beta1\b`, "{Group}/{v1beta1}",
		`samplecontroller\.k8s\.io`, "{Group}",
		`samplecontroller([/.])v1alpha1`, "{package}${1}{version}",
		`samplecontroller([/.])v1\b`, "{package}${1}{v1}",
		`Samplecontroller((?:\(\)\.)?)V1alpha1`, "{GoGroup}${1}{Version}",
		`Samplecontroller`, "{GoGroup}",
		`alert-samplecontroller`, "alert-{anchor}",
		`samplecontroller`, "{package}",
		`\bsamplev1alpha1\b`, "{alias}",
		`sample-controller`, "{program}",
		`sample_controller`, "{pro_gram}",
		`Sample [Cc]ontroller`, "{Pro Gram}",
		`sample controller`, "{pro gram}",
		`SampleController`, "{ProGram}",
		// With Controller at the end, because otherwise it would often equal the plural.
		`sampleController`, "{proGram}Controller",
		// After a slash, it is the version of another group.
		`(^|[^/\w])v1alpha1\b`, "${1}{version}",
		`(^|[^/\w])v1beta1\b`, "${1}{v1beta1}",
		`\bapplyv1alpha1\b`, "apply{version}",
		`\bfo\b`, "{short}",
		`(?i)\b(f)oo(ds?|t|ter|tprint|tnote|l|lish|lproof)\b`, "${1}{oo}${2}",
		`foo(spec|scheme)`, "{kind}${1}",
		`FOO`, "{KIND}",
	)
	inTexts = replacements(
		"\\ba([ `\"*]+)Foo\\b", "{article}${1}{Kind}",
		"\\bA([ `\"*]+)Foo\\b", "{Article}${1}{Kind}",
		`\bfoos([A-Z])`, "{kindsName}${1}",
		`\bfoo([A-Z])`, "{kindName}${1}",
		`Foos`, "{Kinds}", `Foo`, "{Kind}", `foos`, "{kinds}", `foo`, "{kind}",
	)
	inExported = replacements(`Foos`, "{Kinds}", `Foo`, "{Kind}", `foos`, "{kinds}", `foo`, "{kind}")
	inHidden   = replacements(
		`^foos([^a-z]|$)`, "{hiddenNames}${1}",
		`^foo([^a-z]|$)`, "{hiddenName}${1}",
		`Foos`, "{hiddenKinds}", `Foo`, "{hiddenKind}", `foos`, "{kinds}", `foo`, "{kind}",
	)
	// Not after a backslash, as in \nFoo.
	hiddenWord = regexp.MustCompile(`(?:^|[^\\\w])(?:[a-z]\w*Foo\w*|foos?[A-Z]\w*)`)
)

// slotText returns a text with slots. Words that look like unexported identifiers are spelled as in
// the code.
func slotText(text string) string { return slotKind(replaceAll(text, inAll)) }

func slotKind(text string) string {
	text = hiddenWord.ReplaceAllStringFunc(text, func(found string) string {
		word := strings.TrimLeftFunc(found, func(r rune) bool { return !unicode.IsLetter(r) })
		return strings.TrimSuffix(found, word) + replaceAll(word, inHidden)
	})
	return replaceAll(text, inTexts)
}

// slotGo returns Go code with slots. In strings and comments, foo is a resource; elsewhere it is
// a variable. It adds the identifiers, with slots, to idents.
func slotGo(source string, idents map[string]bool) string {
	source = replaceAll(source, inAll)
	var scan scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	scan.Init(file, []byte(source), nil, scanner.ScanComments)
	var out strings.Builder
	end := 0
	for pos, kind, literal := scan.Scan(); kind != token.EOF; pos, kind, literal = scan.Scan() {
		var slotted string
		switch {
		case kind == token.STRING || kind == token.COMMENT:
			slotted = slotKind(literal)
		case kind != token.IDENT:
			continue
		case token.IsExported(literal):
			slotted = replaceAll(literal, inExported)
		default:
			slotted = replaceAll(literal, inHidden)
		}
		if kind == token.IDENT {
			idents[slotted] = true
		}
		out.WriteString(source[end:file.Offset(pos)] + slotted)
		end = file.Offset(pos) + len(literal)
	}
	return out.String() + source[end:]
}

// slotFile returns a file with slots, also in its path.
func slotFile(file treeFile, idents map[string]bool) treeFile {
	switch {
	case path.Ext(file.path) == ".go":
		file.data = []byte(slotGo(string(file.data), idents))
	case path.Base(file.path) != "go.sum" && file.isText():
		file.data = []byte(slotText(string(file.data)))
	}
	file.path = slotText(file.path)
	return file
}

// oldName matches the sample's names that remain in a text with slots.
var oldName = regexp.MustCompile(`(?i)foo|sample[-_ .]?controller|\bsamplev[0-9]|` + string(firstSlot))

// traces returns the places in files with slots that still contain one of the sample's names.
func traces(files []treeFile) []string {
	var found []string
	for _, file := range files {
		if oldName.MatchString(file.path) {
			found = append(found, file.path)
		}
		if path.Base(file.path) == "go.sum" || !file.isText() {
			continue
		}
		for i, line := range strings.Split(string(file.data), "\n") {
			if oldName.MatchString(line) {
				found = append(found, fmt.Sprintf("%s:%d: %s", file.path, i+1, strings.TrimSpace(line)))
			}
		}
	}
	return found
}

// filler returns a Replacer that fills the slots.
func (s spelling) filler() *strings.Replacer {
	var pairs []string
	for i, slot := range slots {
		pairs = append(pairs, string(firstSlot+rune(i)), slot.fill(s))
	}
	return strings.NewReplacer(pairs...)
}

// fill returns a file with the project's names.
func (s spelling) fill(file treeFile) (treeFile, error) {
	fill := s.filler()
	file.path = fill.Replace(file.path)
	if file.isText() {
		file.data = []byte(fill.Replace(string(file.data)))
	}
	var err error
	if path.Ext(file.path) == ".go" {
		if file.data, err = format.Source(file.data); err != nil {
			err = fmt.Errorf("%s, with the new names: %w", file.path, err)
		}
	}
	return file, err
}

// spellingFor returns the spelling of a project's names in code with these identifiers. It
// ignores scopes: a name that is used anywhere is taken. The compiler finds other conflicts.
func spellingFor(n names, idents map[string]bool) spelling {
	s := spelling{names: n}
	s.longAlias = idents[s.alias()]
	fill, became := s.filler(), map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(idents)) {
		if !strings.ContainsAny(name, hiddenSlots) {
			continue
		}
		spelled := fill.Replace(name)
		if idents[spelled] || became[spelled] || !token.IsIdentifier(spelled) || types.Universe.Lookup(spelled) != nil {
			s.suffixed = true
		}
		became[spelled] = true
	}
	return s
}
