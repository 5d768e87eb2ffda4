// SPDX-License-Identifier: Apache-2.0

// The verdicts on every status that test/oracle has recorded.

package waiters

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// recorded is a state of a Foo as test/oracle keeps it.
type recorded struct {
	CarriedOut bool
	Foo        unstructured.Unstructured
}

// TestNoToolBelievesAFooBeforeItIsCarriedOut judges the statuses that the simulation of
// faults records, or those in the folder RECORDED_STATUSES, if that is set: each other test
// with the oracle writes there, too. It refuses those that an end-to-end test writes by
// itself, and those whose conditions a CustomResourceDefinition of such a test prunes.
func TestNoToolBelievesAFooBeforeItIsCarriedOut(t *testing.T) {
	folder := os.Getenv("RECORDED_STATUSES")
	if folder == "" {
		folder = simulate(t)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	must(t, err)
	check := loadHealthCheck(t)
	pending, believed := 0, 0
	for _, file := range files {
		var state recorded
		must(t, json.Unmarshal(read(t, file), &state))
		text, err := state.Foo.MarshalJSON()
		must(t, err)
		kstatus, argo := kstatusOf(t, &state.Foo), check.healthOf(t, &state.Foo)
		isCurrent, isHealthy := kstatus == status.CurrentStatus, argo.status == "Healthy"
		if isCurrent != isHealthy || isCurrent && !state.CarriedOut {
			t.Errorf("kstatus says %s, and Argo CD %v, of a Foo that was carried out since its generation began: %v\n%s", kstatus, argo, state.CarriedOut, text)
		}
		if isCurrent {
			believed++
		}
		if generation, _, _ := unstructured.NestedInt64(state.Foo.Object, "status", "observedGeneration"); generation == 0 {
			pending++
		}
	}
	if pending == 0 || believed == 0 {
		t.Errorf("of %d statuses, %d are of no controller, and %d are believed: the record is not complete", len(files), pending, believed)
	}
}

// simulate runs the simulation in the root module, which this module can't import, and
// returns the folder with the statuses.
func simulate(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, "simulation_test.go")); err != nil {
		t.Skip("there is no simulation")
	}
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-run=^TestSimulation$", ".")
	command.Dir, command.Env = root, append(os.Environ(), "RECORDED_STATUSES="+folder)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}
