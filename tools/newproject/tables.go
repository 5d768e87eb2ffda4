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

// Writing Markdown documents, with the columns of tables and outputs aligned again.

package main

import "strings"

// document returns a Markdown document with the new names. It aligns tables in the output
// of commands as the command would.
func (s speller) document(text string) string {
	var out, block []string
	inCode := false
	flush := func() {
		switch {
		case len(block) == 0:
		case inCode:
			out = append(out, s.table(block)...)
		default:
			out = append(out, s.text(strings.Join(block, "\n"), prose))
		}
		block = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence || inCode && (line == "" || strings.HasPrefix(line, "$ ")) {
			flush()
			out = append(out, s.text(line, prose))
			inCode = inCode != fence
			continue
		}
		block = append(block, line)
	}
	flush()
	return strings.Join(out, "\n")
}

// table returns lines with the new names, and aligns columns that are at least two spaces
// apart.
func (s speller) table(lines []string) []string {
	starts := columnsOf(lines)
	if len(lines) < 2 || len(starts) < 2 {
		return strings.Split(s.text(strings.Join(lines, "\n"), prose), "\n")
	}
	out := make([]string, len(lines))
	for i, start := range starts {
		end := -1
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		oldWidth, width := 0, 0
		cells := make([]string, len(lines))
		for j, line := range lines {
			old := cell(line, start, end)
			cells[j] = s.text(old, prose)
			oldWidth, width = max(oldWidth, len(old)), max(width, len(cells[j]))
		}
		for j := range lines {
			if end >= 0 {
				cells[j] += strings.Repeat(" ", width-len(cells[j])+end-start-oldWidth)
			}
			out[j] += cells[j]
		}
	}
	for i := range out {
		out[i] = strings.TrimRight(out[i], " ")
	}
	return out
}

// cell returns the text of a line in a column, without trailing spaces.
func cell(line string, start, end int) string {
	if end < 0 || end > len(line) {
		end = len(line)
	}
	return strings.TrimRight(line[min(start, len(line)):end], " ")
}

// columnsOf returns the offsets at which columns begin: each line has either text after
// two spaces there, or none.
func columnsOf(lines []string) []int {
	longest := 0
	for _, line := range lines {
		longest = max(longest, len(line))
	}
	starts := []int{0}
	for at := 2; at < longest; at++ {
		begins, broken := false, false
		for _, line := range lines {
			begins = begins || at < len(line) && line[at] != ' '
			broken = broken || at-2 < len(line) && strings.TrimRight(line[at-2:min(at, len(line))], " ") != ""
		}
		if begins && !broken {
			starts = append(starts, at)
		}
	}
	return starts
}
