// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/sample-controller/test/mutants"
)

// TestNumbersAgree compares numbers in documents with their source. Rounded ones may differ from
// it by a tenth.
func TestNumbersAgree(t *testing.T) {
	const readme, faults, bench, steps = "README.md", "docs/faults.md", "docs/benchmarks.md", "docs/from-upstream.md"
	const manual, workload = "docs/operations.md", "artifacts/deploy/workload/deployment.yaml"
	rows := count(t, "\n\\| ([A-G][0-9]+|rest) \\|", faults)
	baselines := count(t, "\n\\| (\\S+ \\| no fault: |rest \\|)", faults)
	result := numbers(t, faults, `fails 0 of (\d+) rows. Upstream's fails (\d+) of the (\d+) that`)
	missed, others := count(t, `\| \*\*missed\*\* \|`, bench), count(t, `\| (met|not decided) \|`, bench)
	faster := numbers(t, bench, `\| throughput / controller-runtime \| ≥ [\d.]+ \| ([\d.]+)`)
	loop := count(t, "\n", "controller.go", "writes.go", "status.go", "pkg/reconcile/plan/world.go", "pkg/reconcile/plan/step.go")
	plan := slices.DeleteFunc(tracked(t, "pkg/reconcile/plan", "pkg/reconcile/table", "internal/kinds"), func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	const cells = `(?:[^|]*\|){2} ` // two of a table
	for _, claim := range []struct {
		document, text string
		tolerance      float64
		want           []float64
	}{
		{readme, `passes all (\d+) such tests.* upstream fails (\d+) of the (\d+) that`, 0, result},
		{readme, `(\d+) tests: (\d+) faults, (\d+) baselines without one; none`, 0, []float64{rows, rows - baselines, baselines}},
		{readme, `\| (\d+) of the (\d+) that apply fail`, 0, result[1:]},
		{readme, `(\d+) of (\d+) targets missed`, 0, []float64{missed, missed + others}},
		{readme, `without its limit \| \| ([\d.]+) times as fast`, 0.1, []float64{1 / faster[0]}},
		{readme, `([\d,]+) without its client's limit`, 0.1, numbers(t, bench, `upstream-unlimited \| (\d+) \| \d+ \| [\d.]+ \| \d+ \|`)},
		{readme, `the status \| ([\d,]+) `, 0.1, []float64{count(t, "\n", append(plan, "controller.go", "handlers.go", "writes.go", "status.go")...)}},
		{steps, `about ([\d,]+) lines in five files`, 0.1, []float64{loop}},
		{manual, `CPU: ([\d.]+) ms for each new Foo; ([\d.]+) ms with`, 0, numbers(t, bench, `ours \| 2000 \|`+cells+`([\d.]+) .*? ours \| 300 \|[^|]*\| ([\d.]+) `)},
		{manual, `Memory: (\d+) MiB, plus about (\d+) KiB .*? and (\d+) KiB`, 0.1, numbers(t, bench, `\| settled Foos \| ours .*? \| 0 \| ([\d.]+) \|.*? 10000 \| \d+ \(([\d.]+)\).*? foreign .*? 10000 \| [\d.]+ \(([\d.]+)\)`)},
		{manual, `(\d+) MiB when 10,000 Foos`, 0, numbers(t, bench, `ours \| 10000 \|`+cells+`[^|]*\| (\d+)`)},
		{manual, `enough for ([\d,]+) Foos, with ([\d.]+) s of CPU after a start and (\d+) MiB`, 0.1, append(
			numbers(t, bench, `starts with (\d+) settled`), numbers(t, bench, `calls in that time .*? ours \|(?:[^|]*\|){2} ([\d.]+) \| (\d+)`)...)},
		{workload, `(\d+) MiB without Foos, (\d+) MiB with # 1,000, (\d+) MiB when 10,000`, 0.1, append(
			numbers(t, bench, `\| settled Foos \| ours .*? \| 0 \| ([\d.]+) \|.*? 1000 \| ([\d.]+)`), numbers(t, bench, `ours \| 10000 \|`+cells+`[^|]*\| (\d+)`)...)},
		{workload, `([\d.]+) ms of CPU for each new Foo, and ([\d.]+) ms without`, 0, numbers(t, bench,
			`writes. Installed: .*? ours \| 2000 \|[^|]*\| ([\d.]+) .*? ours \| 2000 \|[^|]*\| ([\d.]+)`)},
		{"docs/verification.md", `which of (\d+) mistakes`, 0, []float64{float64(len(mutants.All()))}},
	} {
		isNear := func(a, b float64) bool { return math.Abs(a-b) <= claim.tolerance*b }
		if got := numbers(t, claim.document, claim.text); len(got) == 0 || !slices.EqualFunc(got, claim.want, isNear) {
			t.Errorf("%s says %v in %q: want %v", claim.document, got, claim.text, claim.want)
		}
	}
}

// TestConstantsAreThoseOfTheCode compares numbers in sentences with constants.
func TestConstantsAreThoseOfTheCode(t *testing.T) {
	const contract, manual = "docs/contract.md", "docs/operations.md"
	for _, claim := range []struct{ document, text, file, unit, constants string }{
		{contract, `If many wait, (\d+) and the Foo`, "handlers.go", "", "maxAsking"},
		{contract, `their number is written at most every (\d+) s`, "pkg/reconcile/memory/status.go", "Second", "ThrottleInterval"},
		{contract, `who has the name, is written at most every (\d+) s`, "pkg/reconcile/memory/status.go", "Second", "MessageInterval"},
		{contract, `One status after (\d+) min`, "pkg/reconcile/memory/status.go", "Minute", "crdMismatchRetry"},
		{contract, `events are deferred for at most (\d+) s`, "pkg/process/events/events.go", "Second", "maxDeferral"},
		{contract, `([\d,]+) events are kept`, "pkg/process/events/events.go", "", "capacity"},
		{contract, `doubled each time, up to (\d+) minutes`, "pkg/reconcile/queue/retry.go", "Minute", "LastRetry"},
		{contract, `After a separate back-off: (\d+) ms`, "pkg/reconcile/queue/retry.go", "Millisecond", "firstRetry"},
		{contract, `at the latest after (\d+) s. While`, "pkg/reconcile/queue/retry.go", "Second", "BehindRetry"},
		{contract, `After (\d+) s, doubled, or when`, "pkg/reconcile/queue/retry.go", "Second", "RefusedRetry"},
		{contract, `Three repairs at once, then (\d+) s after`, "pkg/reconcile/memory/series.go", "Second", "firstPause"},
		{contract, `once rejections have lasted (\d+) s`, "pkg/reconcile/memory/problem.go", "Second", "refusedFor"},
		{contract, `quotes at most (\d+) bytes`, "pkg/reconcile/plan/conditions.go", "", "MaxQuote"},
		{contract, `more than ([\d,]+) characters, or of more than (\d+) labels`, "internal/kinds/deployment.go", "", "maxSelector maxSelectorTexts"},
		{manual, `a rollout counts for at most (\d+) minutes`, "pkg/reconcile/memory/rollouts.go", "Minute", "rolloutTimeout"},
		{manual, `Syncs in progress have (\d+) s`, "controller.go", "Second", "drainTimeout"},
		{manual, `the release of the Lease (\d+) s`, "pkg/process/election/election.go", "Second", "ReleaseTimeout"},
		{manual, `events (\d+) s, and responses`, "main.go", "Second", "flushTimeout"},
		{manual, `responses of the metrics port (\d+) s`, "pkg/process/serving/server.go", "Second", "ShutdownTimeout"},
		{manual, `a leader's Lease expired (\d+) s ago`, "main.go", "Second", "watchdogGrace"},
		{manual, `a change of its owner queues (\d+)`, "handlers.go", "", "maxAsking"},
		{manual, `who has the name at most every (\d+) s`, "pkg/reconcile/memory/status.go", "Second", "MessageInterval"},
		{manual, `it waits, up to (\d+) minutes`, "pkg/reconcile/memory/series.go", "Minute", "lastPause"},
		{manual, `a port holds (\d+) connections`, "pkg/process/serving/connections.go", "", "maxConnections"},
		{manual, `strangers share (\d+) requests per second`, "pkg/process/serving/gate.go", "", "reviewsPerSecond"},
	} {
		value := `([\d_]+)\s`
		if claim.unit != "" {
			value = `(?:(\d+) \* )?time\.` + claim.unit + `\b` // without a number, it is 1
		}
		var want []float64
		for name := range strings.FieldsSeq(claim.constants) {
			match := regexp.MustCompile(`\b` + name + `\s+= ` + value).FindStringSubmatch(read(t, claim.file))
			if match == nil {
				t.Fatalf("%s has no constant %s in the unit %q", claim.file, name, claim.unit)
			}
			number, err := strconv.ParseFloat(cmp.Or(strings.ReplaceAll(match[1], "_", ""), "1"), 64)
			want = append(want, must(t, number, err))
		}
		if got := numbers(t, claim.document, claim.text); !slices.Equal(got, want) {
			t.Errorf("%s says %v in %q: %s in %s are %v", claim.document, got, claim.text, claim.constants, claim.file, want)
		}
	}
}

// TestSizesAreTrue compares the table of sizes with the files, to a fiftieth.
func TestSizesAreTrue(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| [^|]* \| `+"`(.*)`"+` \| ([\d,]+) \|$`).FindAllStringSubmatch(read(t, "docs/from-upstream.md"), -1)
	if len(rows) == 0 {
		t.Error("docs/from-upstream.md has no table of sizes")
	}
	for _, row := range rows {
		said, err := strconv.ParseFloat(strings.ReplaceAll(row[2], ",", ""), 64)
		if got := count(t, "\n", tracked(t, strings.Fields(row[1])...)...); err != nil || math.Abs(said-got) > got/50 {
			t.Errorf("docs/from-upstream.md says %s lines for %s: there are %v", row[2], row[1], got)
		}
	}
}

// numbers returns the numbers in the groups of an expression in a document, whose lines it joins.
func numbers(t *testing.T, document, expression string) (found []float64) {
	t.Helper()
	match := regexp.MustCompile(expression).FindStringSubmatch(strings.Join(strings.Fields(read(t, document)), " "))
	for i := 1; i < len(match); i++ {
		number, err := strconv.ParseFloat(strings.ReplaceAll(match[i], ",", ""), 64)
		found = append(found, must(t, number, err))
	}
	return found
}

// count returns how often an expression matches in files.
func count(t *testing.T, expression string, files ...string) (n float64) {
	t.Helper()
	for _, file := range files {
		n += float64(len(regexp.MustCompile(expression).FindAllString(read(t, file), -1)))
	}
	return n
}
