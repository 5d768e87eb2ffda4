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

// defectPatience is how long something may take that a defect keeps from ever
// happening. The reason that a row then gives is compared, so that a slow
// machine is not taken for the defect's work.
const defectPatience = 40 * time.Second

// TestTheHarnessCanFail puts a defect into a copy of the controller, and sees
// that a row goes red, for the reason that the defect gives.
func TestTheHarnessCanFail(t *testing.T) {
	for _, defect := range []struct {
		patch string
		row   string
		cases func(counted) []trialCase
		// reason is what the row has to say.
		reason string
	}{
		{"no-resource-version", "D1", rivals, "annotation somebody=mine, which somebody else put on Deployment a, is gone"},
		{"no-uid-check", "B3", deadOwner, "Deployment a, which belongs to others, has been changed"},
		{"no-rename-cleanup", "C1", workloadCase("rename"), "it asks for Deployment two and controls [one two]"},
		{"lease-released-early", "E2", leaderStopped, "the Lease was released while a write was under way"},
		{"status-each-pass", "rest", atRest, "nothing happens, and it writes"},
		{"failed-write-counts", "D2", scaleAnswered500, "reports Ready for generation 2"},
	} {
		t.Run(defect.patch, func(t *testing.T) {
			t.Parallel()
			broken, err := ours(t.Context(), patched(t, defect.patch), filepath.Join(t.TempDir(), "controller"))
			if err != nil {
				t.Fatal(err)
			}
			tr := newTrial(t, broken)
			tr.patience = defectPatience
			err = errors.Join(defect.cases(nil)[0].run(t.Context(), tr), tr.lies(t.Context()))
			if err == nil {
				t.Fatalf("Row %s does not notice", defect.row)
			}
			if !strings.Contains(err.Error(), defect.reason) {
				t.Fatalf("Row %s fails for another reason than %q: %v\n%s", defect.row, defect.reason, err, tr.story())
			}
			t.Logf("Row %s is red: %v", defect.row, err)
		})
	}
}

// scaleAnswered500 is a Foo that is scaled, and the write of that to its
// Deployment is answered 500.
func scaleAnswered500(counted) []trialCase {
	return slices.DeleteFunc(eachWrite(refusals)(counted{"scale": manyWrites}), func(c trialCase) bool {
		return c.name != "scale, write 1, 500"
	})
}

// workloadCase is a workload without a fault.
func workloadCase(name string) func(counted) []trialCase {
	return func(counted) []trialCase {
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

// patched returns a folder with the controller's sources, as they are in the
// tree, and a patch on them.
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
	// Should the folder lie in a repository, git would take the patch to be about that.
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("The patch %s no longer fits: make it again: %v\n%s", patch, err, out)
	}
	return folder
}
