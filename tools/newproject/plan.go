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

// Planning: the new project in memory.

package main

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// newReadme is the new project's README.md, with the sample's names.
//
//go:embed readme.md.txt
var newReadme []byte

const readmeFile = "README.md"

// sources holds the files of this project that are read for a new one.
type sources struct {
	kept      []treeFile         // files that the new project gets
	parsed    map[string]*goFile // the Go files of kept
	generated []string           // paths of files that the new project generates itself
	clients   []*goFile          // the Go files of generated
}

// project is the new project before anything is generated.
type project struct {
	names
	files []treeFile
}

// readSources sorts and parses the files of this project.
func readSources(tree []treeFile) (*sources, error) {
	src := &sources{parsed: map[string]*goFile{}}
	var err error
	if src.kept, err = keep(tree); err != nil {
		return nil, err
	}
	for _, file := range src.kept {
		if path.Ext(file.path) != ".go" {
			continue
		}
		if src.parsed[file.path], err = parseGo(file.path, file.data); err != nil {
			return nil, err
		}
	}
	for _, file := range tree {
		if !matches(file.path, made) {
			continue
		}
		src.generated = append(src.generated, file.path)
		if path.Ext(file.path) != ".go" {
			continue
		}
		parsed, err := parseGo(file.path, file.data)
		if err != nil {
			return nil, err
		}
		src.clients = append(src.clients, parsed)
	}
	return src, nil
}

// plan makes the new project in memory.
func (src *sources) plan(n names) (*project, error) {
	s := newSpeller(n)
	locals, err := src.check(s)
	if err != nil {
		return nil, err
	}
	p := &project{names: n}
	for _, file := range src.kept {
		data, err := s.file(file, src.parsed[file.path], locals[path.Dir(file.path)])
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, treeFile{s.text(file.path, prose), data, file.mode})
	}
	return p, p.checkPaths()
}

// check returns an error if names conflict. Otherwise it returns, by folder, the
// identifiers that need other names than the regular ones. Names in the API and in
// generated code are fixed, so a conflict there is an error.
func (src *sources) check(s speller) (map[string]map[string]string, error) {
	err := errors.Join(checkProgram(s.names, src.kept), checkGeneratedPaths(s, src.generated), checkScopes(s.names, src.clients))
	if err != nil {
		return nil, err
	}
	given := slices.Clone(src.clients)
	var free []*goFile
	for _, file := range src.parsed {
		if strings.HasPrefix(file.path, "pkg/apis/") {
			given = append(given, file)
		} else {
			free = append(free, file)
		}
	}
	locals := map[string]map[string]string{}
	for _, p := range packagesOf(given) {
		err = errors.Join(err, p.checkDeclared(s, nil))
	}
	for _, p := range packagesOf(free) {
		locals[p.folder] = p.locals(s)
		err = errors.Join(err, p.checkDeclared(s, locals[p.folder]))
	}
	return locals, err
}

// keep leaves out the files that the new project does not get, generated files, and the
// marked parts of the others.
func keep(tree []treeFile) ([]treeFile, error) {
	kept := []treeFile{{readmeFile, newReadme, 0o644}}
	for _, file := range tree {
		if matches(file.path, omitted) || matches(file.path, made) {
			continue
		}
		data, err := omit(file.path, file.data)
		if err != nil {
			return nil, err
		}
		data, err = reword(file.path, data)
		if err != nil {
			return nil, err
		}
		kept = append(kept, treeFile{file.path, data, file.mode})
	}
	return kept, nil
}

// file returns the content of a file with the new names.
func (s speller) file(file treeFile, parsed *goFile, locals map[string]string) ([]byte, error) {
	switch {
	case parsed != nil:
		return s.rewrite(parsed, locals)
	case path.Base(file.path) == "go.mod":
		return rewriteGoMod(file.path, file.data, s.Module)
	case path.Base(file.path) == "go.sum" || !file.isText():
		return file.data, nil
	case path.Ext(file.path) == ".md":
		return []byte(s.document(string(file.data))), nil
	}
	return []byte(s.text(string(file.data), prose)), nil
}

// checkPaths returns an error if two files have the same path.
func (p *project) checkPaths() error {
	seen := map[string]bool{}
	for _, file := range p.files {
		if seen[file.path] {
			return fmt.Errorf("two files would have the path %s: choose another kind, group or module", file.path)
		}
		seen[file.path] = true
	}
	return nil
}
