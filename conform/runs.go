// SPDX-License-Identifier: Apache-2.0

// The runs: those that are recorded, and then one for each case, several at once.

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/sample-controller/conform/judge"
	"example.com/sample-controller/test/testcluster"
)

// warmups bounds how often a run without a fault is repeated because a write failed: the API
// server takes up to half a minute to know new kinds and permissions.
const warmups = 5

// recordRuns runs the steps without a fault: once to see that they work, and then as often as
// it takes to learn what differs between equal runs.
func (r *runner) recordRuns(ctx context.Context) ([]*judge.Run, error) {
	for i := range warmups {
		run, log := r.try(ctx, judge.Case{Level: judge.Quiet, Fault: "none", Step: judge.EachStep})
		r.statuses = judge.StatusesOf(run.Calls)
		switch {
		case run.Problem != "":
			return nil, errors.New(run.Problem)
		case len(run.Writes()) == 0:
			return nil, fmt.Errorf("the program writes nothing; the end of its log:\n%s", strings.Join(testcluster.LastLines(log, 30), "\n"))
		}
		if !hasFailed(run) {
			break
		}
		r.progress("A write failed without a fault (%d of %d attempts)", i+1, warmups)
	}
	runs := make([]*judge.Run, recordedRuns+1)
	var all sync.WaitGroup
	for i := range runs {
		fault := "none"
		if i == recordedRuns {
			fault = judge.Touching
		}
		all.Go(func() { runs[i], _ = r.try(ctx, judge.Case{Level: judge.Quiet, Fault: fault, Step: judge.EachStep}) })
		if r.clusterWide {
			all.Wait()
		}
	}
	all.Wait()
	for _, run := range runs {
		if run.Problem != "" {
			return nil, errors.New(run.Problem)
		}
		for _, step := range run.Steps {
			if !step.Quiet {
				return nil, fmt.Errorf("without a fault, the program does not come to rest in step %s, so nothing can be judged", step.Name)
			}
		}
	}
	r.record = judge.Common(runs[:recordedRuns], runs[recordedRuns])
	return runs, nil
}

func hasFailed(run *judge.Run) bool {
	for _, call := range run.Calls {
		if judge.IsWork(call) && call.Code >= http.StatusBadRequest && call.Code != http.StatusConflict && call.Code != http.StatusNotFound {
			return true
		}
	}
	return false
}

// runAll runs the cases: together those that leave the control plane alone, then the others.
func (r *runner) runAll(ctx context.Context, cases []judge.Case, results *judge.Results) error {
	var together, alone []judge.Case
	for _, c := range cases {
		if c.Alone {
			alone = append(alone, c)
		} else {
			together = append(together, c)
		}
	}
	// The longest first.
	slices.SortStableFunc(together, func(a, b judge.Case) int { return boolCompare(isLong(b), isLong(a)) })
	queue := make(chan judge.Case, len(together))
	for _, c := range together {
		queue <- c
	}
	close(queue)
	var workers sync.WaitGroup
	for range r.parallel {
		workers.Go(func() {
			for c := range queue {
				if ctx.Err() == nil {
					r.runCase(ctx, c, results)
				}
			}
		})
	}
	workers.Wait()
	for _, c := range alone {
		if ctx.Err() == nil {
			r.runCase(ctx, c, results)
		}
	}
	return ctx.Err()
}

func isLong(c judge.Case) bool {
	return c.Fault == "rest" || c.Fault == "dead-connections" || c.Level == judge.Replicas
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// runCase runs a case until it passes, at most as often as a failure needs to count.
func (r *runner) runCase(ctx context.Context, c judge.Case, results *judge.Results) {
	if results.FailedOften(c) {
		results.NotJudged(c.Level, c.Fault, "some were not run because the first failed")
		return
	}
	began, problem := time.Now(), ""
	var found [][]judge.Finding
	for range attempts {
		run, log := r.try(ctx, c)
		if ctx.Err() != nil {
			return
		}
		if problem = run.Problem; problem != "" {
			r.save(c, run, []judge.Finding{{Level: c.Level, Rule: "not judged", Text: problem}}, log)
			if run.Reached {
				break
			}
			continue
		}
		findings := judge.Judge(r.record, run)
		found = append(found, findings)
		if len(findings) > 0 || r.cases != "" {
			r.save(c, run, findings, log)
		}
		if results.Decided(c, found) {
			break
		}
	}
	r.progress("%d/%d %s %.0fs %s", r.ended.Add(1), r.planned, c.Name, time.Since(began).Seconds(), r.conclude(c, found, problem, results))
}

// conclude adds what the attempts found to the results, and says it in a line.
func (r *runner) conclude(c judge.Case, found [][]judge.Finding, problem string, results *judge.Results) string {
	if len(found) == 0 {
		results.NotJudged(c.Level, c.Fault, problem)
		return "not judged: " + problem
	}
	if !results.Decided(c, found) {
		problem = "it failed, but the fault did not come in three attempts: " + found[0][0].Text
		results.NotJudged(c.Level, c.Fault, problem)
		return "not judged: " + problem
	}
	text := "passes"
	if failures := results.Judged(c, judge.Common3(found)); len(failures) > 0 {
		text = fmt.Sprintf("FAILS (%s): %s", failures[0].Rule, failures[0].Text)
	} else if len(found[0]) > 0 {
		text = fmt.Sprintf("passes in attempt %d (%s): %s", len(found), found[0][0].Rule, found[0][0].Text)
	}
	return text
}

// save writes the requests and the log of an attempt: one that failed or could not be judged, or any if
// cases were chosen.
func (r *runner) save(c judge.Case, run *judge.Run, findings []judge.Finding, log string) {
	var text, requests strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "%s: %s: %s\n", f.Level, f.Rule, f.Text)
	}
	fmt.Fprintf(&text, "\nRepeat it:\n  %s\n", r.repeat(c.Name))
	for i, step := range run.Steps {
		fmt.Fprintf(&requests, "%s step %s (%d)\n", step.Began.Format("15:04:05.000"), step.Name, i)
	}
	for _, call := range run.Calls {
		fmt.Fprintf(&requests, "%s\n", call)
		if judge.IsWork(call) {
			fmt.Fprintf(&requests, "  sent     %.2000q\n  answered %.2000q\n", call.Body, call.Answer)
		}
	}
	folder := filepath.Join(r.output, c.Name)
	err := os.MkdirAll(folder, 0o755)
	for name, content := range map[string]string{"findings.txt": text.String(), "requests.log": requests.String(), "program.log": log} {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644))
	}
	if err != nil {
		r.progress("the log of %s is lost: %v", c.Name, err)
	}
}
