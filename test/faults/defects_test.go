// SPDX-License-Identifier: Apache-2.0

// Tests of the tests: a copy of the controller with a known defect must fail the row that
// covers it.

package faults

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// defectTimeout bounds each wait for a state that the defect may keep from ever coming.
// The test also compares the reason of the failure, so a slow machine is not mistaken for
// the defect.
const defectTimeout = 40 * time.Second

// TestTheHarnessCanFail applies a defect to a copy of the controller and expects a row to
// fail, for the reason that the defect gives.
func TestTheHarnessCanFail(t *testing.T) {
	for _, defect := range []struct {
		patch string
		row   string
		cases func(writeCounts) []trialCase
		// reason is a part of the error that the row must return.
		reason string
	}{
		{"no-resource-version", "D1", deploymentTakenAway, "Deployment a, which belongs to others, has been changed"},
		{"no-uid-check", "B3", deletedOwner, "Deployment a, which belongs to others, has been changed"},
		{"no-rename-cleanup", "C1", workloadCase("rename"), "it asks for Deployment two and controls [one two]"},
		{"lease-released-early", "E2", leaderStopped, "the Lease was released while a write was under way"},
		{"status-each-pass", "rest", atRest, "nothing happens, and it writes"},
		{"failed-write-counts", "D2", scaleAnswered500, "reports Ready for generation 2"},
	} {
		t.Run(defect.patch, func(t *testing.T) {
			t.Parallel()
			broken, err := buildOurs(t.Context(), patched(t, defect.patch), filepath.Join(t.TempDir(), "controller"))
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

// patched copies the controller's sources from the working tree, applies a patch to the
// copy, and returns its folder.
func patched(t *testing.T, patch string) string {
	t.Helper()
	folder := t.TempDir()
	files, err := filepath.Glob(filepath.Join(moduleRoot, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, filepath.Join(moduleRoot, "go.mod"), filepath.Join(moduleRoot, "go.sum")) {
		content, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(file)), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, sub := range []string{"internal", "pkg"} {
		if err := os.CopyFS(filepath.Join(folder, sub), os.DirFS(filepath.Join(moduleRoot, sub))); err != nil {
			t.Fatal(err)
		}
	}
	path, err := filepath.Abs(filepath.Join("testdata/defects", patch+".patch"))
	if err != nil {
		t.Fatal(err)
	}
	apply := exec.CommandContext(t.Context(), "git", "apply", path)
	apply.Dir = folder
	// If the folder is inside a repository, git would apply the patch to that repository.
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("The patch %s no longer applies, create it again: %v\n%s", patch, err, out)
	}
	return folder
}
