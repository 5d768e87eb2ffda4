// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Object is an object of a file.
type Object struct {
	*unstructured.Unstructured

	document document
	path     string // of the object in the document, as in "items[2]."
}

// Read returns the objects of files. A list counts as its items.
func Read(files []string, in io.Reader) ([]Object, error) {
	documents, err := readDocuments(files, in)
	if err != nil {
		return nil, err
	}
	var objects []Object
	for _, d := range documents {
		object, err := decode(d)
		if err != nil {
			return nil, err
		}
		if objects, err = appendItems(objects, object); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// lineNumbers matches a line's number in a message of the YAML library.
var lineNumbers = regexp.MustCompile(`line (\d+)`)

func decode(d document) (Object, error) {
	object := Object{&unstructured.Unstructured{}, d, ""}
	// JSON is sent as it is: a conversion would turn 1.0, which is no integer, into 1.
	if utilyaml.IsJSONBuffer(d.data) {
		return object, decodeJSON(object)
	}
	text, err := yaml.YAMLToJSONStrict(d.data)
	if err != nil {
		// The library counts the lines of the document.
		message := lineNumbers.ReplaceAllStringFunc(err.Error(), func(found string) string {
			line, _ := strconv.Atoi(found[len("line "):])
			return fmt.Sprintf("line %d", d.line+line-1)
		})
		return object, fmt.Errorf("%s:%d: %s", d.file, d.line, message)
	}
	if err := object.UnmarshalJSON(text); err != nil {
		return object, object.Fail("", err)
	}
	return object, nil
}

func decodeJSON(object Object) error {
	var fields map[string]any
	problems, err := json.UnmarshalStrict(object.document.data, &fields)
	if err := errors.Join(append(problems, err)...); err != nil {
		return object.Fail("", err)
	}
	if err := object.UnmarshalJSON(object.document.data); err != nil {
		return object.Fail("", err)
	}
	return nil
}

func appendItems(objects []Object, object Object) ([]Object, error) {
	if !object.IsList() {
		return append(objects, object), nil
	}
	list, err := object.ToList()
	if err != nil {
		return nil, object.Fail("", err)
	}
	for i := range list.Items {
		item := Object{&list.Items[i], object.document, fmt.Sprintf("%sitems[%d].", object.path, i)}
		if objects, err = appendItems(objects, item); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// Fail returns an error about a field of the object, or about the object if path is empty,
// with the file and line.
func (o Object) Fail(path string, err error) error {
	return fmt.Errorf("%s:%d: %w", o.document.file, o.document.lineOf(o.path+path), err)
}
