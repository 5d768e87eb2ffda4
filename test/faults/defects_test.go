// SPDX-License-Identifier: Apache-2.0

// Tests of the tests: a mutant of the controller must fail the row that covers its mistake.

package faults

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/test/mutants"
)

// defectTimeout bounds each wait for a state that the defect may keep from ever coming.
// The test also compares the reason of the failure, so a slow machine is not mistaken for
// the defect.
const defectTimeout = 40 * time.Second

// TestTheHarnessCanFail runs a row with a mutant, and expects it to fail for the reason that
// the mistake gives.
func TestTheHarnessCanFail(t *testing.T) {
	for _, defect := range []struct {
		mutant string
		row    string
		cases  func(writeCounts) []trialCase
		// reason is a part of the error that the row must return.
		reason string
	}{
		{"an update without a precondition", "D1", deploymentTakenAway, "Deployment a, which belongs to others, has been changed"},
		{"an owner is known by its name, not its UID", "B3", deletedOwner, "Deployment a, which belongs to others, has been changed"},
		{"children of earlier names are never obsolete", "C1", workloadCase("rename"), "it asks for Deployment two and controls [one two]"},
		{"the Lease is released while a write is under way", "E2", leaderStopped, "the Lease was released while a write was under way"},
		{"the status is written in each sync", "rest", atRest, "nothing happens, and it writes"},
		{"a failed write counts as done", "D2", scaleAnswered500, "reports Ready for generation 2"},
	} {
		t.Run(defect.mutant, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			overlay, err := mutants.Named(defect.mutant).Overlay(moduleRoot, folder)
			if err != nil {
				t.Fatal(err)
			}
			broken, err := buildOurs(t.Context(), filepath.Join(folder, "controller"), "-overlay="+overlay)
			if err != nil {
				t.Fatal(err)
			}
			tr := newTrial(t, broken)
			tr.timeout = defectTimeout
			err = errors.Join(defect.cases(nil)[0].run(t.Context(), tr), tr.falseStatuses(t.Context()))
			if err == nil {
				t.Fatalf("Row %s passes in spite of the defect", defect.row)
			}
			if !strings.Contains(err.Error(), defect.reason) {
				t.Fatalf("Row %s fails, but not with %q: %v\n%s", defect.row, defect.reason, err, tr.diagnostics())
			}
			t.Logf("Row %s fails as expected: %v", defect.row, err)
		})
	}
}

// deploymentTakenAway takes a Deployment away from its Foo while a write to it is under way.
func deploymentTakenAway(writeCounts) []trialCase {
	return []trialCase{{"", duringUpdate(takeAway)}}
}

// scaleAnswered500 scales a Foo and answers 500 to the write to its Deployment.
func scaleAnswered500(writeCounts) []trialCase {
	return slices.DeleteFunc(eachWrite(refusals)(writeCounts{"scale": manyWrites}), func(c trialCase) bool {
		return c.name != "scale, write 1, 500"
	})
}

// workloadCase returns a workload without a fault.
func workloadCase(name string) func(writeCounts) []trialCase {
	return func(writeCounts) []trialCase {
		for _, w := range workloads() {
			if w.name == name {
				return []trialCase{{name, func(ctx context.Context, tr *trial) error {
					_, err := w.run(ctx, tr)
					return err
				}}}
			}
		}
		return nil
	}
}
