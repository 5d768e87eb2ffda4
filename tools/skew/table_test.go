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
	"os"
	"strings"
	"testing"
)

var (
	emulated = []string{"1.35", "1.36", "1.37"}
	fresh36  = row{minor: "1.36", kubernetes: "v1.37.0", day: "2026-11-22", absent: "resources: none; features: 3",
		outcome: outcome{passed: 9, skipped: []string{"TestB: a|b"}}}
	fresh37 = row{minor: "1.37", kubernetes: "v1.37.0", day: "2026-11-22", absent: "nothing",
		outcome: outcome{passed: 8, failed: []string{"TestA/x", "TestC"}}}
)

const (
	columns = "| Kubernetes | passed | failed | skipped | absent, of what the newest has | run with, on |\n|---|---|---|---|---|---|\n"
	line34  = "| 1.34 | 1 | 0 | 0 | old | v1.36.0, 2026-01-01 |\n"
	line36  = "| 1.36 | 1 | 0 | 0 | old | v1.36.0, 2026-01-01 |\n"
	line37  = "| 1.37 | 1 | 0 | 0 | old | v1.36.0, 2026-01-01 |\n"
	new36   = "| 1.36 | 9 | 0 | 1: TestB: a\\|b | resources: none; features: 3 | v1.37.0, 2026-11-22 |\n"
	new37   = "| 1.37 | 8 | 2: TestA/x; TestC | 0 | nothing | v1.37.0, 2026-11-22 |\n"

	begin, end         = "text\n\n" + beginMark + "\n", endMark + "\n\n| another | table |\n"
	otherMark, markEnd = "<!-- other: begin -->\n", "<!-- other: end -->\n"
)

func TestTheTableIsPutIntoItsPlace(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		rows     []row
		want     string
	}{
		"the first":                       {begin + end, []row{fresh37, fresh36}, begin + columns + new36 + new37 + end},
		"another":                         {begin + columns + line36 + line37 + end, []row{fresh36, fresh37}, begin + columns + new36 + new37 + end},
		"one row of it":                   {begin + columns + line36 + line37 + end, []row{fresh36}, begin + columns + new36 + line37 + end},
		"a Kubernetes that is gone":       {begin + columns + line34 + line36 + end, []row{fresh37}, begin + columns + line36 + new37 + end},
		"other columns":                   {begin + "| a | b |\n|---|---|\n" + line36 + end, nil, begin + columns + line36 + end},
		"between marks of another's":      {begin + otherMark + columns + line36 + markEnd + end, []row{fresh36}, begin + otherMark + columns + new36 + markEnd + end},
		"the first, between such":         {begin + otherMark + markEnd + end, []row{fresh36}, begin + otherMark + columns + new36 + markEnd + end},
		"the same again, with no new row": {begin + columns + new36 + new37 + end, nil, begin + columns + new36 + new37 + end},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := placeIn(test.document, test.rows, emulated)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestADocumentWithoutAPlaceIsRefused(t *testing.T) {
	for _, document := range []string{"", "text\n", begin, end, endMark + "\n" + beginMark + "\n"} {
		if got, err := placeIn(document, nil, emulated); err == nil {
			t.Errorf("of %q became %q", document, got)
		}
	}
}

func TestTheDocumentHasAPlaceForTheTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	placed, err := placeIn(string(text), []row{fresh37}, emulated)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(placed, "\n"+new37) {
		t.Error("the row is not there")
	}
}
