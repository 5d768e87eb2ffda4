// SPDX-License-Identifier: Apache-2.0

// Tests of the parser, and of the comparison of outputs.

package docs

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fences replaces ”' by the fence of a block, which a raw string of Go can't contain.
func fences(text string) string { return strings.ReplaceAll(text, "'''", "```") }

// describe describes a step in one line.
func describe(s step) string {
	words := []string{fmt.Sprint(s.line), map[bool]string{false: "run", true: "expect"}[s.prints]}
	for _, part := range []struct {
		is   bool
		text string
	}{
		{s.background, "until " + s.until},
		{s.fails, "fails"},
		{s.skip != "", "skip " + s.skip},
		{s.interrupt != "", "interrupt " + s.interrupt},
		{s.cluster, "cluster"},
		{s.timeout != 2*time.Minute, fmt.Sprint("timeout ", s.timeout)},
		{s.unordered, fmt.Sprint("unordered of ", s.of, " within ", s.within)},
	} {
		if part.is {
			words = append(words, part.text)
		}
	}
	return strings.Join(append(words, strconv.Quote(s.text)), " ")
}

func TestParseDocument(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		want     []string
	}{
		"a block of commands":                   {"Do\n\n'''sh\nmake\n'''\n", []string{`3 run "make\n"`}},
		"prose, and languages that are not run": {"A `b`.\n\n'''go\nx\n'''\n\n'''text\ny\n'''\n\n'''yaml\nz\n'''\n", nil},
		"options": {
			"<!-- run: fails timeout=5m -->\n'''sh\nfalse\n'''\n",
			[]string{`2 run fails timeout 5m0s "false\n"`},
		},
		"an option with spaces, and an empty line after the comment": {
			"<!-- run: background until=\"is up\" -->\n\n'''sh\nserve\n'''\n",
			[]string{`3 run until is up "serve\n"`},
		},
		"skip": {"<!-- run: skip=\"no Docker\" -->\n'''sh\ndocker\n'''\n", []string{`2 run skip no Docker "docker\n"`}},
		"what is printed": {
			"'''sh\nls\n'''\n\n<!-- prints -->\n'''text\na\n'''\n<!-- prints: within=30s unordered of=x -->\n'''\nb\n'''\n",
			[]string{`1 run "ls\n"`, `6 expect "a\n"`, `10 expect unordered of x within 30s "b\n"`},
		},
		"actions alone, and before a block": {
			"<!-- run: cluster -->\n\nText.\n\n<!-- run: interrupt=a -->\n<!-- run: cluster id=b -->\n'''sh\nx\n'''\n",
			[]string{
				`1 run cluster ""`,
				`5 run interrupt a ""`,
				`7 run cluster "x\n"`,
			},
		},
		"hidden commands": {"Text.\n\n<!-- hidden:\nkubectl get --raw=/\n-->\n", []string{`3 run "kubectl get --raw=/"`}},
		"hidden commands, closed on the line of the last": {"<!-- hidden:\na\nb -->\n", []string{`1 run "a\nb"`}},
		"a console": {
			"<!-- run: fails cluster -->\n'''console\n$ one\n$ two \\\n> --three\nfour\n\nfive\n$ six\nseven\n'''\n",
			[]string{
				`3 run cluster "one\n"`, `4 run "two \\\n--three\n"`, `6 expect "four\n\nfive\n"`,
				`9 run fails "six\n"`, `10 expect "seven\n"`,
			},
		},
		"a block in a list":  {"- a\n\n  '''sh\n  b\n  '''\n", []string{`3 run "b\n"`}},
		"a block in details": {"<details>\n<summary>a</summary>\n\n'''sh\nb\n'''\n\n</details>\n", []string{`4 run "b\n"`}},
		"another comment":    {"<!-- made by hand -->\n\nText.\n\n'''sh\nb\n'''\n", []string{`5 run "b\n"`}},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := parseDocument([]byte(fences(test.document)))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range steps {
				got = append(got, describe(s))
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestMistakesInDocuments(t *testing.T) {
	for name, test := range map[string]struct{ document, want string }{
		"a block without a language":     {"\n'''\nmake\n'''\n", `line 2: a block of ""`},
		"a block of bash":                {"'''bash\nmake\n'''\n", `line 1: a block of "bash"`},
		"a block by its indentation":     {"Do\n\n    make\n", "line 3: an indented code block"},
		"an option that does not exist":  {"<!-- run: sleep=3 -->\n'''sh\nmake\n'''\n", "line 1: flag provided but not defined: -sleep"},
		"no valid option":                {"<!-- run: -x -->\n'''sh\nmake\n'''\n", "not defined: -x"},
		"a bad duration":                 {"<!-- run: timeout=3 -->\n'''sh\nmake\n'''\n", `invalid value "3" for flag -timeout`},
		"a skip without a value":         {"<!-- run: skip fails -->\n'''sh\nmake\n'''\n", "flag needs an argument: -skip"},
		"a skip without a reason":        {"<!-- run: skip=\"\" -->\n'''sh\nmake\n'''\n", "the reason is missing"},
		"until in the foreground":        {"<!-- run: until=a -->\n'''sh\nmake\n'''\n", "until= is for background blocks"},
		"a background block that fails":  {"<!-- run: background fails -->\n'''sh\nmake\n'''\n", "has no exit code to check"},
		"run before yaml":                {"<!-- run: fails -->\n'''yaml\na\n'''\n", `a block of "yaml" must not follow the comment <!-- run -->`},
		"prints before sh":               {"<!-- prints -->\n'''sh\na\n'''\n", `a block of "sh" must not follow the comment <!-- prints -->`},
		"two things for one block":       {"<!-- prints -->\n<!-- run: fails -->\n'''sh\na\n'''\n", "line 1: no block follows the comment <!-- prints -->"},
		"a misspelled comment":           {"<!-- print -->\n'''text\na\n'''\n", `must start with run or prints, not with "print"`},
		"prints before no block":         {"<!-- prints -->\n\nText.\n", "line 1: no block follows the comment <!-- prints -->"},
		"prints at the end":              {"<!-- prints -->\n", "no block follows the comment"},
		"a console that has no command":  {"'''console\na\n'''\n", "must start with a command"},
		"several mistakes, all reported": {"'''\na\n'''\n\n'''bash\nb\n'''\n", "line 1: a block of \"\": use sh for commands, console for commands with output, and text for anything else\nline 5:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseDocument([]byte(fences(test.document)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

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
