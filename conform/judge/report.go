// SPDX-License-Identifier: Apache-2.0

// The report: a table in Markdown, and JUnit's XML.

package judge

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// Rows returns the rows in the order of the levels.
func (r *Results) Rows() []*Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := slices.Clone(r.rows)
	slices.SortStableFunc(rows, func(a, b *Row) int {
		return slices.Index(Levels(), a.Level) - slices.Index(Levels(), b.Level)
	})
	return slices.DeleteFunc(rows, func(row *Row) bool { return row.Cases == 0 && len(row.NotJudged) == 0 })
}

// Markdown returns the levels, the rows, and the failures.
func (r *Results) Markdown() string {
	var b, failures strings.Builder
	fmt.Fprintf(&b, "# What conform found\n\n`%s` took %v.\n\n", r.Command, r.Took)
	if r.Chosen != "" {
		fmt.Fprintf(&b, "Only the cases that match `%s` were run.\n\n", r.Chosen)
	}
	fmt.Fprint(&b, "| level | |\n|---|---|\n")
	for _, level := range Levels() {
		fmt.Fprintf(&b, "| %s | %s |\n", level, r.Verdict(level))
	}
	fmt.Fprint(&b, "\n| level | fault or rule | cases | result |\n|---|---|---:|---|\n")
	for _, row := range r.Rows() {
		result := "passes"
		switch {
		case len(row.Failures) > 0:
			result = fmt.Sprintf("**fails** %d/%d", len(row.Failures), row.Cases)
		case row.Cases == 0:
			result = "-"
		}
		if len(row.NotJudged) > 0 {
			result += "; not judged: " + strings.Join(row.NotJudged, "; ")
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s |\n", row.Level, row.Title, row.Cases, result)
		for _, f := range row.Failures[:min(mostFailures, len(row.Failures))] {
			fmt.Fprintf(&failures, "- **%s** (%s): %s\n", f.Case, f.Rule, f.Text)
		}
	}
	if failures.Len() > 0 {
		fmt.Fprintf(&b, "\n## Failures\n\n%s", failures.String())
	}
	return b.String()
}

// The elements of JUnit's format that CI systems read.
type (
	suites struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []suite  `xml:"testsuite"`
	}
	suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *message `xml:"failure,omitempty"`
		Skipped *message `xml:"skipped,omitempty"`
	}
	message struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit returns the rows as test cases, a suite for each level.
func (r *Results) JUnit() ([]byte, error) {
	var all suites
	for _, level := range Levels() {
		s := suite{Name: level}
		for _, row := range r.Rows() {
			if row.Level != level {
				continue
			}
			test := testcase{Class: "conform." + level, Name: row.Title}
			s.Tests++
			if len(row.Failures) > 0 {
				s.Failures++
				var text strings.Builder
				for _, f := range row.Failures {
					fmt.Fprintf(&text, "%s: %s\n", f.Case, f.Text)
				}
				test.Failure = &message{fmt.Sprintf("%d of %d cases", len(row.Failures), row.Cases), text.String()}
			} else if row.Cases == 0 {
				s.Skipped++
				test.Skipped = &message{strings.Join(row.NotJudged, "; "), ""}
			}
			s.Cases = append(s.Cases, test)
		}
		all.Suites = append(all.Suites, s)
	}
	content, err := xml.MarshalIndent(all, "", "  ")
	return append([]byte(xml.Header), append(content, '\n')...), err
}
