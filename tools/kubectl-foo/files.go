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

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// standardInput is the name of a file that means standard input.
const standardInput = "-"

// document is a YAML or JSON document of a file.
type document struct {
	file string
	line int // where it begins
	data []byte
}

func (d document) fail(err error) error {
	return fmt.Errorf("%s:%d: %w", d.file, d.line, err)
}

// readFoos returns the Foos of files. Documents of other kinds are an error.
func readFoos(files []string, in io.Reader) ([]*samplev1alpha1.Foo, error) {
	documents, err := readDocuments(files, in)
	if err != nil {
		return nil, err
	}
	var foos []*samplev1alpha1.Foo
	for _, d := range documents {
		foo, err := decodeFoo(d)
		if err != nil {
			return nil, err
		}
		foos = append(foos, foo)
	}
	return foos, nil
}

func decodeFoo(d document) (*samplev1alpha1.Foo, error) {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(d.data, &kind); err != nil {
		return nil, d.fail(err)
	}
	if kind.APIVersion != samplev1alpha1.SchemeGroupVersion.String() || kind.Kind != "Foo" {
		return nil, d.fail(fmt.Errorf("this is a %s of %s, not a Foo of %s", kind.Kind, kind.APIVersion, samplev1alpha1.SchemeGroupVersion))
	}
	foo := &samplev1alpha1.Foo{}
	if err := yaml.UnmarshalStrict(d.data, foo); err != nil {
		return nil, d.fail(err)
	}
	if foo.Name == "" {
		return nil, d.fail(errors.New("the Foo has no metadata.name"))
	}
	return foo, nil
}

// readDocuments returns the documents of files that are not empty.
func readDocuments(files []string, in io.Reader) ([]document, error) {
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

func sameSpec(a, b *samplev1alpha1.Foo) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}
