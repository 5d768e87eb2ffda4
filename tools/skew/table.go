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
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The table stands between these, and only its own lines are replaced.
const (
	beginMark = "<!-- skew: make skew writes this table -->"
	endMark   = "<!-- skew: end -->"
)

// row is a line of the table.
type row struct {
	minor, kubernetes, day string
	outcome                outcome
	absent                 string
}

var head = []string{
	"| Kubernetes | passed | failed | skipped | absent, of what the newest has | run with, on |",
	"|---|---|---|---|---|---|",
}

func (r row) String() string {
	return fmt.Sprintf("| %s | %d | %s | %s | %s | %s, %s |", r.minor, r.outcome.passed, list(r.outcome.failed), list(r.outcome.skipped),
		r.absent, r.kubernetes, r.day)
}

// list is a number and, in a table's cell, what was counted.
func list(what []string) string {
	if len(what) == 0 {
		return "0"
	}
	return strings.ReplaceAll(fmt.Sprintf("%d: %s", len(what), strings.Join(what, "; ")), "|", `\|`)
}

// place puts rows into a document. A row of the document stays where there is no other of its Kubernetes, and goes with
// a Kubernetes that can't be emulated any more.
func place(document string, rows []row, emulated []string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	placed, err := placeIn(string(text), rows, emulated)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	if len(rows) == 0 {
		return nil
	}
	return os.WriteFile(document, []byte(placed), 0o600) // it exists, and keeps its mode
}

func placeIn(text string, rows []row, emulated []string) (string, error) {
	before, rest, found := strings.Cut(text, beginMark+"\n")
	between, after, ended := strings.Cut(rest, endMark+"\n")
	if !found || !ended {
		return "", errors.New("no place for the table: it has no " + beginMark + " and " + endMark)
	}
	// Other lines may mark the table for other programs.
	lines := slices.Collect(strings.Lines(between))
	isTable := func(line string) bool { return strings.HasPrefix(line, "|") }
	begin := slices.IndexFunc(lines, isTable)
	if begin < 0 {
		begin = min(1, len(lines))
	}
	var kept []string
	for _, line := range slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !isTable(line) }) {
		kept = append(kept, strings.TrimSpace(line))
	}
	table := strings.Join(slices.Concat(head, merge(kept, rows, emulated)), "\n") + "\n"
	lines = slices.Insert(slices.DeleteFunc(lines, isTable), begin, table)
	return before + beginMark + "\n" + strings.Join(lines, "") + endMark + "\n" + after, nil
}

// merge returns a line for each Kubernetes that has one, new or kept.
func merge(kept []string, rows []row, emulated []string) []string {
	var lines []string
	for _, minor := range emulated {
		line := ""
		if i := slices.IndexFunc(kept, func(old string) bool { return strings.HasPrefix(old, "| "+minor+" |") }); i >= 0 {
			line = kept[i]
		}
		if i := slices.IndexFunc(rows, func(r row) bool { return r.minor == minor }); i >= 0 {
			line = rows[i].String()
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
