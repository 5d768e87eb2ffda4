// SPDX-License-Identifier: Apache-2.0

// Tests of the parser.

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// fences replaces ”' by the fence of a block, which a raw string of Go can't contain.
func fences(text string) string { return strings.ReplaceAll(text, "'''", "```") }

// describe describes a step in one line.
func describe(s step) string {
	kind := map[stepKind]string{stepRun: "run", stepExpect: "expect", stepFile: "file", stepPatch: "patch", stepBefore: "before"}[s.kind]
	text := fmt.Sprintf("%d %s", s.line, kind)
	if s.kind == stepRun && s.run.terminal != "1" {
		text += " in " + s.run.terminal
	}
	if s.run.background {
		text += " until " + s.run.until
	}
	if s.run.fails {
		text += " fails"
	}
	if s.run.skip != "" {
		text += " skip " + s.run.skip
	}
	if s.run.before != (beforeOptions{}) {
		text += fmt.Sprintf(" %+v", s.run.before)
	}
	return text + fmt.Sprintf(" %q", s.text)
}

func TestParseDocument(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		want     []string
	}{
		"a block of commands":                   {"Do\n\n'''sh\nmake\n'''\n", []string{`3 run "make\n"`}},
		"prose, and languages that are not run": {"A `b`.\n\n'''go\nx\n'''\n\n'''text\ny\n'''\n\n'''yaml\nz\n'''\n", nil},
		"options": {
			"<!-- run: terminal=2 fails timeout=5m -->\n'''sh\nfalse\n'''\n",
			[]string{`2 run in 2 fails "false\n"`},
		},
		"an option with spaces, and an empty line after the comment": {
			"<!-- run: background until=\"is up\" -->\n\n'''sh\nserve\n'''\n",
			[]string{`3 run until is up "serve\n"`},
		},
		"skip": {"<!-- run: skip=\"no Docker\" -->\n'''sh\ndocker\n'''\n", []string{`2 run skip no Docker "docker\n"`}},
		"what is printed": {
			"'''sh\nls\n'''\n\n<!-- prints -->\n'''text\na\n'''\n<!-- prints: unordered -->\n'''\nb\n'''\n",
			[]string{`1 run "ls\n"`, `6 expect "a\n"`, `10 expect "b\n"`},
		},
		"a file and a patch": {
			"<!-- file: a.yaml -->\n'''yaml\na: b\n'''\n<!-- patch -->\n'''diff\n+c\n'''\n",
			[]string{`2 file "a: b\n"`, `6 patch "+c\n"`},
		},
		"actions alone, and before a block": {
			"<!-- run: cluster -->\n\nText.\n\n<!-- run: interrupt=a -->\n<!-- run: cluster id=b -->\n'''sh\nx\n'''\n",
			[]string{
				`1 before {interrupt:false victim: cluster:true} " cluster"`,
				`5 before {interrupt:true victim:a cluster:false} " interrupt=a"`,
				`7 run {interrupt:false victim: cluster:true} "x\n"`,
			},
		},
		"hidden commands": {"Text.\n\n<!-- hidden:\nkubectl get --raw=/\n-->\n", []string{`3 run "kubectl get --raw=/"`}},
		"hidden commands, closed on the line of the last": {"<!-- hidden:\na\nb -->\n", []string{`1 run "a\nb"`}},
		"a console": {
			"<!-- run: fails cluster -->\n'''console\n$ one\n$ two \\\n> --three\nfour\n\nfive\n$ six\nseven\n'''\n",
			[]string{
				`3 run {interrupt:false victim: cluster:true} "one\n"`, `4 run "two \\\n--three\n"`, `6 expect "four\n\nfive\n"`,
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
		"an option that does not exist":  {"<!-- run: sleep=3 -->\n'''sh\nmake\n'''\n", "line 1: sleep: unknown option sleep"},
		"no valid option":                {"<!-- run: -x -->\n'''sh\nmake\n'''\n", "is not an option"},
		"a bad duration":                 {"<!-- run: timeout=3 -->\n'''sh\nmake\n'''\n", "timeout: "},
		"a skip without a reason":        {"<!-- run: skip -->\n'''sh\nmake\n'''\n", "say why"},
		"until in the foreground":        {"<!-- run: until=a -->\n'''sh\nmake\n'''\n", "until= is for background blocks"},
		"a background block that fails":  {"<!-- run: background fails -->\n'''sh\nmake\n'''\n", "has no exit code to check"},
		"run before yaml":                {"<!-- run: fails -->\n'''yaml\na\n'''\n", "only sh and console blocks can be run"},
		"prints before sh":               {"<!-- prints -->\n'''sh\na\n'''\n", "output must be in a text block"},
		"patch before yaml":              {"<!-- patch -->\n'''yaml\na\n'''\n", "a patch must be in a diff block"},
		"a file without a name":          {"<!-- file -->\n'''yaml\na\n'''\n", "say which file"},
		"commands for a file":            {"<!-- file: a -->\n'''sh\na\n'''\n", "commands are run, not written to a file"},
		"two things for one block":       {"<!-- prints -->\n<!-- file: a -->\n'''text\na\n'''\n", "only one of run, prints"},
		"a misspelt comment":             {"<!-- print -->\n'''text\na\n'''\n", `must start with run, prints, file or patch, not with "print"`},
		"prints before no block":         {"<!-- prints -->\n\nText.\n", "line 1: no block follows the comment <!-- prints -->"},
		"prints at the end":              {"<!-- prints -->\n", "no block follows the comment"},
		"a console that has no command":  {"'''console\na\n'''\n", "must start with a command"},
		"several mistakes, all reported": {"'''\na\n'''\n\n'''bash\nb\n'''\n", "line 1: a block of \"\": say sh if it is commands, console if it has their output, text if it is neither\nline 5:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseDocument([]byte(fences(test.document)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestDefaultsOfABlock(t *testing.T) {
	steps, err := parseDocument([]byte(fences("'''sh\na\n'''\n\n<!-- prints: within=30s unordered of=x -->\n'''text\nb\n'''\n")))
	if err != nil {
		t.Fatal(err)
	}
	if want := (runOptions{terminal: "1", timeout: 2 * time.Minute}); steps[0].run != want {
		t.Errorf("run: %+v, want %+v", steps[0].run, want)
	}
	if want := (printOptions{of: "x", anyOrder: true, within: 30 * time.Second}); steps[1].prints != want {
		t.Errorf("prints: %+v, want %+v", steps[1].prints, want)
	}
}
