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
	"reflect"
	"strings"
	"testing"
)

const someRun = `==> e2e
{"Action":"start","Package":"e"}
{"Action":"output","Package":"e","Output":"e2e: testing against a cluster\n"}
{"Action":"run","Package":"e","Test":"TestA"}
{"Action":"output","Package":"e","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"run","Package":"e","Test":"TestA/one"}
{"Action":"pass","Package":"e","Test":"TestA/one","Elapsed":1}
{"Action":"pass","Package":"e","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"e","Test":"TestB","Output":"    b_test.go:7: this server is too old\n"}
{"Action":"output","Package":"e","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"e","Test":"TestB"}
{"Action":"skip","Package":"e","Test":"TestC"}
`

const someFailures = `{"Action":"output","Package":"e","Test":"TestD/x","Output":"    d_test.go:9: not so\n"}
{"Action":"fail","Package":"e","Test":"TestD/x"}
{"Action":"pass","Package":"e","Test":"TestD/y"}
{"Action":"fail","Package":"e","Test":"TestD"}
{"Action":"fail","Package":"e","Test":"TestDD"}
{"Action":"fail","Package":"e"}
`

func TestTheTestsOfARunAreCounted(t *testing.T) {
	skipped := []string{"TestB: this server is too old", "TestC: no reason given"}
	for name, test := range map[string]struct {
		printed   string
		succeeded bool
		want      outcome
	}{
		"all pass, or say why not":             {someRun, true, outcome{passed: 2, skipped: skipped}},
		"of a test that fails, its part":       {someRun + someFailures, false, outcome{passed: 3, failed: []string{"TestDD", "TestD/x"}, skipped: skipped}},
		"something fails, and it is no test":   {someRun, false, outcome{passed: 2, failed: []string{"the run itself"}, skipped: skipped}},
		"nothing was run":                      {"==> e2e\n", true, outcome{failed: []string{"the run itself: no test passed"}}},
		"the tests were not built":             {"a.go:1:1: no\n", false, outcome{failed: []string{"the run itself"}}},
		"the last line is without its newline": {`{"Action":"pass","Test":"TestA"}`, true, outcome{passed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var log, progress strings.Builder
			seen := newTally("1.35", &log, &progress)
			if err := seen.read(strings.NewReader(test.printed)); err != nil {
				t.Fatal(err)
			}
			got := seen.outcome(test.succeeded)
			if !sameOutcome(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if wantOK := len(test.want.failed) == 0; got.ok() != wantOK {
				t.Errorf("it is called good: %t", got.ok())
			}
		})
	}
}

// sameOutcome compares them, whatever the order of the failures.
func sameOutcome(a, b outcome) bool {
	count := func(names []string) map[string]int {
		counts := map[string]int{}
		for _, name := range names {
			counts[name]++
		}
		return counts
	}
	return a.passed == b.passed && reflect.DeepEqual(count(a.failed), count(b.failed)) && reflect.DeepEqual(count(a.skipped), count(b.skipped))
}

func TestTheLogIsWhatWasPrintedAndFailuresAreSaidAtOnce(t *testing.T) {
	var log, progress strings.Builder
	seen := newTally("1.35", &log, &progress)
	if err := seen.read(strings.NewReader(someRun + someFailures)); err != nil {
		t.Fatal(err)
	}
	wantLog := "==> e2e\ne2e: testing against a cluster\n=== RUN   TestA\n    b_test.go:7: this server is too old\n--- SKIP: TestB (0.00s)\n    d_test.go:9: not so\n"
	if log.String() != wantLog {
		t.Errorf("the log is\n%s\nand not\n%s", &log, wantLog)
	}
	if want := "1.35: FAIL: TestD/x\n1.35: FAIL: TestD\n1.35: FAIL: TestDD\n"; progress.String() != want {
		t.Errorf("the progress is\n%s\nand not\n%s", &progress, want)
	}
}
