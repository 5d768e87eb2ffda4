// SPDX-License-Identifier: Apache-2.0

// Tests of the comparison.

package main

import "testing"

func TestMatches(t *testing.T) {
	for name, test := range map[string]struct {
		document, printed string
		want              bool
	}{
		"the same":                       {"a b", "a b", true},
		"another word":                   {"a b", "a c", false},
		"another number":                 {"a 1", "a 2", false},
		"part of a line":                 {"a", "a b", false},
		"blanks":                         {"  a   b", "a\tb ", true},
		"anything":                       {"a … d", "a b c d", true},
		"anything, but the rest differs": {"a … d", "a b c", false},
		"anything in a name":             {"foo-…-jfmlc", "foo-694f5774b-jfmlc", true},
		"… is not a regexp":              {"a.c …", "abc d", false},
		"ages":                           {"web True 4s", "web True 1m12s", true},
		"an age and a number":            {"web 4s", "web 4", false},
		"a duration":                     {"took 0.1 s", "took 12.25 s", true},
		"a time":                         {"at 2026-11-21T12:56:21Z", "at 2027-01-02T01:02:03.456Z", true},
		"a time of describe":             {"Start: Sat, 21 Nov 2026 12:56:21 +0000", "Start: Fri, 01 Jan 2027 01:02:03 +0000", true},
		"klog":                           {`I1121 12:56:21.123456   12345 sync.go:87] "Wrote"`, `I0102 01:02:03.000001       7 sync.go:99] "Wrote"`, true},
		"klog, another file":             {`I1121 12:56:21.123456   12345 sync.go:87] "Wrote"`, `I1121 12:56:21.123456   12345 main.go:87] "Wrote"`, false},
		"klog, another severity":         {`I1121 12:56:21.123456   12345 sync.go:87] "Wrote"`, `E1121 12:56:21.123456   12345 sync.go:87] "Wrote"`, false},
		"a ReplicaSet":                   {"foo-694f5774b", "foo-84db89c945", true},
		"a Pod":                          {"foo-694f5774b-jfmlc", "foo-84db89c945-q8jhv", true},
		"another's Pod":                  {"foo-694f5774b-jfmlc", "bar-694f5774b-jfmlc", false},
		"a Pod and ReplicaSet":           {"foo-694f5774b-jfmlc", "foo-694f5774b", false},
		"words of a name":                {"sample-controller-view", "sample-controller-edit", false},
		"a port":                         {"at 127.0.0.1:8080", "at 127.0.0.1:41233", true},
		"a port of localhost":            {"at localhost:1", "at localhost:41233", true},
		"an address":                     {"ip 10.0.0.1", "ip 10.0.0.77", true},
		"a version":                      {"v1.37.0", "v1.38.0", false},
		"a UID":                          {"uid 3ec3a200-1662-4fd2-877d-1ba6dd2ab45d", "uid 00000000-1111-2222-3333-444444444444", true},
		"a resource version":             {`resourceVersion: "339"`, `resourceVersion: "1"`, true},
		"both at once":                   {"127.0.0.1:… 4s", "127.0.0.1:41233 12s", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := matches(test.document, test.printed); got != test.want {
				t.Errorf("matches(%q, %q) = %v; with placeholders: %q and %q",
					test.document, test.printed, got, alike(test.document), alike(test.printed))
			}
		})
	}
}

func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		document, printed string
		anyOrder          bool
		missing           string
	}{
		"all of it":                  {document: "a\nb\n", printed: "a\nb\n"},
		"lines between":              {document: "a\nc\n", printed: "x\na\nb\nc\ny\n"},
		"a line for any others":      {document: "a\n…\nb\n", printed: "a\nb\n"},
		"a line is missing":          {document: "a\nb\n", printed: "a\nc\n", missing: "b"},
		"the other way round":        {document: "a\nb\n", printed: "b\na\n", missing: "b"},
		"printed once, wanted twice": {document: "a\na\n", printed: "a\n", missing: "a"},
		"empty lines don't count":    {document: "a\n\nb\n", printed: "a\nb\n"},
		"nothing printed":            {document: "a\n", printed: "", missing: "a"},
		"any order":                  {document: "b\na\n", printed: "a\nx\nb\n", anyOrder: true},
		"any order, missing":         {document: "b\na\na\n", printed: "a\nb\n", anyOrder: true, missing: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if missing := compare(test.printed, wantedLines(test.document, 1), test.anyOrder); missing != nil {
				got = missing.text
			}
			if got != test.missing {
				t.Errorf("missing %q, want %q", got, test.missing)
			}
		})
	}
}

func TestCompareReturnsTheLineNumberInTheDocument(t *testing.T) {
	missing := compare("a\n", wantedLines("a\n\nb\n", 10), false)
	if missing == nil || missing.line != 12 {
		t.Errorf("got %+v, want line 12", missing)
	}
}
