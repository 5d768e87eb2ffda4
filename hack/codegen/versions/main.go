// SPDX-License-Identifier: Apache-2.0

// Command versions fails if a CustomResourceDefinition in the folder of its argument has
// versions whose schemas differ.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const explanation = `The API server does not convert between versions of this kind. It drops a field that the other
version lacks without a word: from an object that is read in that version, and from the stored
object when that is written back. Any other difference changes data, or makes objects of one
version invalid in the other.
Give the versions the same schema; descriptions may differ. To rename a field, add the new field,
optional, to all versions, and keep the old one.`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: versions FOLDER")
		os.Exit(2)
	}
	if err := checkFolder(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// checkFolder checks each CustomResourceDefinition in the folder.
func checkFolder(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*_*.yaml"))
	if err != nil {
		return err
	}
	var all []error
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = check(text)
		}
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", filepath.Base(file), err))
		}
	}
	return errors.Join(all...)
}

// definition holds the fields of a CustomResourceDefinition that are compared.
type definition struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Versions []version `json:"versions"`
	} `json:"spec"`
}

type version struct {
	Name    string `json:"name"`
	Storage bool   `json:"storage"`
	Schema  struct {
		OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
	} `json:"schema"`
}

// check compares each version of a CustomResourceDefinition with the version in which
// objects are stored, also versions that are not served: objects may be stored in them.
func check(text []byte) error {
	var d definition
	// Without UseNumber, large integers that differ would be the same float64.
	if err := yaml.Unmarshal(text, &d, func(decoder *json.Decoder) *json.Decoder {
		decoder.UseNumber()
		return decoder
	}); err != nil {
		return err
	}
	// The API server refuses a CustomResourceDefinition that stores none.
	stored := max(0, slices.IndexFunc(d.Spec.Versions, func(v version) bool { return v.Storage }))
	var report strings.Builder
	for _, other := range d.Spec.Versions {
		if lines := differences(d.Spec.Versions[stored], other); len(lines) > 0 {
			fmt.Fprintf(&report, "the schemas of %s and %s of %s differ:\n  %s\n",
				d.Spec.Versions[stored].Name, other.Name, d.Metadata.Name, strings.Join(lines, "\n  "))
		}
	}
	if report.Len() > 0 {
		return errors.New(report.String() + explanation)
	}
	return nil
}

// texts are the keywords that may differ, because they are only for readers. Everything
// else must be the same:
//   - The API server drops fields that a schema lacks, and sets the defaults of the version
//     that a client uses. When the client writes the object back, this is stored.
//   - Bounds, rules, types, required and nullable fields decide which objects are valid. An
//     object of a looser version could not be updated in a stricter one, for instance the
//     status of a Foo that a user wrote in the other version.
//   - The x-kubernetes extensions decide which fields are dropped and how lists merge.
var texts = []string{"description", "title", "example", "externalDocs"}

// keywords are those of all fields of a schema, as JSON, by the field's path, a tab and the
// keyword. Each field also has the keyword "". The object itself has the empty path.
type keywords map[string]string

// add adds the keywords of the field at a path, and of those in it.
func (k keywords) add(path string, schema map[string]any) {
	k[path+"\t"] = "is a field"
	for keyword, value := range schema {
		inner, isMap := value.(map[string]any)
		switch {
		case slices.Contains(texts, keyword):
		case keyword == "properties" && isMap:
			for name, property := range inner {
				field, _ := property.(map[string]any)
				k.add(strings.TrimPrefix(path+"."+name, "."), field)
			}
		case keyword == "items" && isMap:
			k.add(path+"[]", inner)
		case keyword == "additionalProperties" && isMap:
			k.add(path+"[*]", inner)
		default:
			k[path+"\t"+keyword] = asJSON(value)
		}
	}
}

// differences returns a line for each field, or keyword of a field, in which the two
// versions differ. It leaves out what is in a field that one version lacks.
func differences(one, other version) []string {
	a, b := keywords{}, keywords{}
	a.add("", one.Schema.OpenAPIV3Schema)
	b.add("", other.Schema.OpenAPIV3Schema)
	union := maps.Clone(a)
	maps.Copy(union, b)
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(union)) {
		path, keyword, _ := strings.Cut(key, "\t")
		around := path + "\t"
		if keyword == "" {
			around = path[:max(0, strings.LastIndexAny(path, ".["))] + "\t"
		}
		what, only := cmp.Or(path, "the object")+":", one.Name
		if a[key] == "" {
			only = other.Name
		}
		if keyword != "" {
			what += " " + keyword + " " + cmp.Or(a[key], b[key])
		}
		switch {
		case a[key] == b[key] || a[around] != b[around]:
		case a[key] == "" || b[key] == "":
			lines = append(lines, what+" only in "+only)
		default:
			lines = append(lines, fmt.Sprintf("%s in %s, %s in %s", what, one.Name, b[key], other.Name))
		}
	}
	return lines
}

// asJSON returns a value on one line, with operators of rules such as < as they are.
func asJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return string(bytes.TrimSpace(text.Bytes()))
}
