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
)

// TestConstantsAreThoseOfTheCode compares numbers in sentences with constants.
func TestConstantsAreThoseOfTheCode(t *testing.T) {
	const contract, manual = "docs/contract.md", "docs/operations.md"
	for _, claim := range []struct{ document, text, file, unit, constants string }{
		{contract, `If many wait, (\d+) and the Foo`, "handlers.go", "", "maxAsking"},
		{contract, `their number is written at most every (\d+) s`, "pkg/reconcile/memory/status.go", "Second", "ThrottleInterval"},
		{contract, `who has the name, is written at most every (\d+) s`, "pkg/reconcile/memory/status.go", "Second", "MessageInterval"},
		{contract, `One status after (\d+) min`, "pkg/reconcile/memory/status.go", "Minute", "crdMismatchRetry"},
		{contract, `([\d,]+) events are kept`, "pkg/process/events/events.go", "", "capacity"},
		{contract, `doubled each time, up to (\d+) minutes`, "pkg/reconcile/queue/retry.go", "Minute", "LastRetry"},
		{contract, `After a separate back-off: (\d+) ms`, "pkg/reconcile/queue/retry.go", "Millisecond", "firstRetry"},
		{contract, `at the latest after (\d+) s. While`, "pkg/reconcile/queue/retry.go", "Second", "BehindRetry"},
		{contract, `After (\d+) s, doubled, or when`, "pkg/reconcile/queue/retry.go", "Second", "RefusedRetry"},
		{contract, `doubled each time, up to (\d+) minutes`, "pkg/reconcile/memory/series.go", "Minute", "lastPause"},
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

// TestFiguresAreThoseOfTheirPage compares figures with the page that a run wrote, rounded as they are said.
func TestFiguresAreThoseOfTheirPage(t *testing.T) {
	const (
		readme, manual, benchmarks, faults = "README.md", "docs/operations.md", "docs/benchmarks.md", "docs/faults.md"
		skip, cell, each                   = `[^|]*\|`, ` ([\d.]+)[^|]*\|`, ` [\d.]+ \(([\d.]+)\)`
	)
	for _, claim := range []struct {
		document, text, page, source string
		unit                         float64 // of the document, in that of the page
	}{
		{readme, `([\d,]+) without its client's limit \| 0, as`, benchmarks, `## At rest .*?\| upstream-unlimited \| 2000 \|` + cell, 1},
		{readme, `\[(\d+) tests: `, faults, `This controller fails 0 of (\d+) rows`, 1},
		{readme, `(\d+) of the (\d+) that apply fail`, faults, `Upstream's fails (\d+) of the (\d+) that can be run`, 1},
		{manual, `CPU: ([\d.]+) ms for each new Foo`, benchmarks, `\| ours \| 2000 \|` + skip + skip + skip + skip + cell, 1},
		{manual, `; ([\d.]+) ms with kube-controller-manager`, benchmarks, `\| ours \| 300 \|` + skip + cell, 1},
		{manual, `Memory: (\d+) MiB, plus`, benchmarks, `## Memory .*?\| 0 \|` + cell, 1},
		{manual, `plus about (\d+) KiB for each Foo`, benchmarks, `\| settled Foos \|.*?\| 10000 \|` + each, 1},
		{manual, `Deployment and (\d+) KiB for each other`, benchmarks, `\| foreign Deployments \|.*?\| 10000 \|` + each, 1},
		{manual, `; (\d+) MiB when 10,000 Foos converge`, benchmarks, `\| ours \| 10000 \|` + skip + skip + cell, 1},
		{manual, `50,000 Foos, with (\d+) s of CPU`, benchmarks, `\| ours \| 50000 \|` + skip + skip + cell, 1000},
		{manual, `of CPU after a start and (\d+) MiB`, benchmarks, `\| ours \| 50000 \|` + skip + skip + skip + cell, 1},
	} {
		found := numbers(t, claim.page, claim.source)
		for i, said := range numbers(t, claim.document, claim.text) {
			if i >= len(found) || roundedLike(said, found[i]/claim.unit) != said {
				t.Errorf("%s says %v in %q: %s has %v", claim.document, said, claim.text, claim.page, found)
			}
		}
	}
	page := read(t, benchmarks)
	missed, met := float64(strings.Count(page, "| **missed** |")), float64(strings.Count(page, "| met |"))
	if said := numbers(t, readme, `(\d+) of (\d+) targets missed`); !slices.Equal(said, []float64{missed, missed + met}) {
		t.Errorf("%s says %v for the targets missed and all targets: %s has %v and %v", readme, said, benchmarks, missed, missed+met)
	}
}

// roundedLike rounds a number to the significant digits of another.
func roundedLike(other, number float64) float64 {
	digits, _, _ := strings.Cut(strconv.FormatFloat(other, 'e', -1, 64), "e")
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(number, 'e', len(strings.ReplaceAll(digits, ".", ""))-1, 64), 64)
	return rounded
}

// TestSizesAreTrue compares the table of sizes with the files, to a tenth.
func TestSizesAreTrue(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| [^|]* \| `+"`(.*)`"+` \| ([\d,]+) \|$`).FindAllStringSubmatch(read(t, "docs/from-upstream.md"), -1)
	if len(rows) == 0 {
		t.Error("docs/from-upstream.md has no table of sizes")
	}
	for _, row := range rows {
		said, err := strconv.ParseFloat(strings.ReplaceAll(row[2], ",", ""), 64)
		got := 0.0
		for _, file := range tracked(t, strings.Fields(row[1])...) {
			got += float64(strings.Count(read(t, file), "\n"))
		}
		if err != nil || math.Abs(said-got) > got/10 {
			t.Errorf("docs/from-upstream.md says %s lines for %s: there are %v", row[2], row[1], got)
		}
	}
}

// numbers returns the numbers in the groups of an expression in a document, whose lines it joins.
func numbers(t *testing.T, document, expression string) (found []float64) {
	t.Helper()
	match := regexp.MustCompile(expression).FindStringSubmatch(strings.Join(strings.Fields(read(t, document)), " "))
	if match == nil {
		t.Errorf("%s has nothing like %q", document, expression)
	}
	for i := 1; i < len(match); i++ {
		number, err := strconv.ParseFloat(strings.ReplaceAll(match[i], ",", ""), 64)
		found = append(found, must(t, number, err))
	}
	return found
}
