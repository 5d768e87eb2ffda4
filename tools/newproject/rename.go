// SPDX-License-Identifier: Apache-2.0

// Renaming files.

package main

import (
	"fmt"
	"go/format"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"strings"
)

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
