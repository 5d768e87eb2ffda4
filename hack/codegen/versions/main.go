// SPDX-License-Identifier: Apache-2.0

// Command versions fails if a CustomResourceDefinition in the folder of its argument has
// versions whose schemas differ.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	var report strings.Builder
	stored := storedVersion(d.Spec.Versions)
	for _, other := range d.Spec.Versions {
		if lines := differences(stored, other); len(lines) > 0 {
			fmt.Fprintf(&report, "the schemas of %s and %s of %s differ:\n  %s\n",
				stored.Name, other.Name, d.Metadata.Name, strings.Join(lines, "\n  "))
		}
	}
	if report.Len() > 0 {
		return errors.New(report.String() + explanation)
	}
	return nil
}

// storedVersion returns the first version if none is marked: the API server refuses such a
// CustomResourceDefinition anyway.
func storedVersion(versions []version) version {
	for _, v := range versions {
		if v.Storage {
			return v
		}
	}
	if len(versions) == 0 {
		return version{}
	}
	return versions[0]
}
