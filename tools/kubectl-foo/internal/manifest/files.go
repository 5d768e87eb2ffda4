// SPDX-License-Identifier: Apache-2.0

// Package manifest reads objects from files, and knows in which lines their fields are.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// standardInput is the name of a file that means standard input.
const standardInput = "-"

// document is a YAML or JSON document of a file.
type document struct {
	file string
	line int // where it begins
	data []byte
}

// readDocuments returns the documents of files that are not empty.
func readDocuments(files []string, in io.Reader) ([]document, error) {
	if len(files) == 0 {
		return nil, errors.New("say which file: -f FILE, or -f - for standard input")
	}
	var documents []document
	for _, file := range files {
		data, err := readFile(file, in)
		if err != nil {
			return nil, err
		}
		found := split(file, data)
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: there is nothing in it", file)
		}
		documents = append(documents, found...)
	}
	return documents, nil
}

func readFile(file string, in io.Reader) ([]byte, error) {
	if file == standardInput {
		return io.ReadAll(in)
	}
	return os.ReadFile(file)
}

// FilesIn returns the YAML and JSON files of a folder and of those in it.
func FilesIn(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: there are no .yaml, .yml or .json files in it", folder)
	}
	return files, err
}

// split returns the documents of a file with the lines in which they begin, which
// libraries that split YAML do not tell.
func split(file string, data []byte) []document {
	var documents []document
	current := document{file: file, line: 1}
	flush := func(next int) {
		if hasContent(current.data) {
			documents = append(documents, current)
		}
		current = document{file: file, line: next}
	}
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		if text := bytes.TrimRight(line, " \r\n"); bytes.Equal(text, []byte("---")) || bytes.HasPrefix(text, []byte("--- ")) {
			flush(i + 2)
			continue
		}
		current.data = append(current.data, line...)
	}
	flush(0)
	return documents
}

// hasContent reports whether a document has more than comments.
func hasContent(data []byte) bool {
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			return true
		}
	}
	return false
}
