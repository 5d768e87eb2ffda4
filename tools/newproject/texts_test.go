//go:build !race

// SPDX-License-Identifier: Apache-2.0

// Tests of plans. They find in seconds what tests of whole projects find in minutes. They
// have no goroutines, and the race detector makes them 25 times as slow; make
// test-new-project-plans runs them without it.

package main

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// quotedFoo matches unexported identifiers as documents have them.
var quotedFoo = regexp.MustCompile("`[a-z][A-Za-z0-9]*Foo[A-Za-z0-9]*`")

// TestTextsNameIdentifiersOfTheCode checks that documents and comments have the other
// spellings, too.
func TestTextsNameIdentifiersOfTheCode(t *testing.T) {
	s, err := ours(t).spellerFor(policy)
	if err != nil || !s.suffixed {
		t.Fatalf("got %v, %v, want a kind whose regular spelling is taken", s.suffixed, err)
	}
	for _, file := range ours(t).kept {
		if path.Ext(file.path) != ".md" {
			continue
		}
		for _, name := range quotedFoo.FindAllString(string(file.data), -1) {
			if got, want := s.text(name), s.identifier(name); got != want {
				t.Errorf("%s: %s became %s, want %s", file.path, name, got, want)
			}
		}
	}
	if other := "kwok.x-k8s.io/v1alpha1"; s.text(other) != other {
		t.Errorf("%s became %s", other, s.text(other))
	}
	source := "package main\n\n// %s deletes foos, and their metadata.\nfunc %s() { println(\"deleteFoos\\nFoos\") }\n"
	s.unexported = map[string]bool{"deleteFoos": true}
	got, err := s.goFile("main.go", []byte(strings.ReplaceAll(source, "%s", "deleteFoos")))
	want := strings.NewReplacer("%s", "deletePolicyResources", "deleteFoos", "deletePolicyResources", "Foos", "Policies", "foos", "policies").Replace(source)
	if err != nil || string(got) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}
