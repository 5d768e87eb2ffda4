// SPDX-License-Identifier: Apache-2.0

// Conformance: whether the model of the API server answers and stores as a real one does.

package explore

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

var (
	paths    = flag.Int("explore.paths", 60, "how many paths to replay on a real API server")
	pathSeed = flag.Uint64("explore.paths-seed", 1, "which paths to replay on a real API server")
)

// stepsOfPath is how long a path is at most. Most make 60 to 80 requests.
const stepsOfPath = 200

// TestConformance replays random paths of a controller's worlds on a real API server, that of
// a cluster without controllers, and fails if that answers, stores or announces anything
// otherwise than the model.
func TestConformance(t *testing.T, owner *footest.OwnerRow, create New) {
	t.Helper()
	if os.Getenv("DEVCLUSTER_BIN") == "" {
		t.Skip("DEVCLUSTER_BIN does not name a devcluster: run make explore-conformance")
	}
	config, err := testcluster.LoadConfig(startCluster(t))
	if err != nil {
		t.Fatal(err)
	}
	found, err := (&Comparison{
		Worlds: pathWorlds(owner), New: create, Server: config, Paths: *paths, Steps: stepsOfPath, Workers: 4, Seed: *pathSeed,
		Progress: func(so *Conformity) {
			fmt.Fprintf(os.Stderr, "explore-conformance: %d %%: %s\n", 100*so.Paths / *paths, so)
		},
	}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("explore-conformance: %s\n", found)
	if testing.Verbose() {
		fmt.Println(found.Table())
	}
	for _, difference := range found.Differences {
		t.Error(difference)
	}
}

// startCluster starts a cluster of an API server alone, with the CustomResourceDefinitions,
// and returns its kubeconfig.
func startCluster(t *testing.T) string {
	t.Helper()
	program := os.Getenv("DEVCLUSTER_BIN")
	cluster, err := testcluster.StartCluster(t.Context(), program, filepath.Join(t.TempDir(), "data"), testcluster.ControlPlaneOnly)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("Output of devcluster (%v):\n%s", err, cluster.Log)
		}
	})
	for _, args := range [][]string{
		{"apply", "-k", filepath.Join(moduleRoot(t), "artifacts/crd")},
		{"wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"},
	} {
		if _, err := testcluster.Kubectl(t.Context(), program, cluster.Kubeconfig, args...); err != nil {
			t.Fatal(err)
		}
	}
	return cluster.Kubeconfig
}

// moduleRoot returns the folder of go.mod, in or above that of the test.
func moduleRoot(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			t.Fatal("there is no go.mod in the folder of the test, or above it")
		}
		folder = parent
	}
}

// pathWorlds have all acts and outcomes, and bounds far beyond those of an exploration.
func pathWorlds(owner *footest.OwnerRow) []World {
	outcomes := append([]Outcome{RefusedFromNow}, allOutcomes...)
	acts := append([]string{
		"create a api", "allow", "keep web", "release web",
		"drift api", "edit api", "strip api", "remove api", "hand api a", "take api", "keep api", "release api",
	}, allOfThem...)
	two := append([]string{
		"create b web", "create b api", "rename b web", "rename b api", "scale b", "delete b", "delete b foreground", "delete b orphan", "hand web b", "hand api b",
	}, acts...)
	return complete(owner,
		World{Name: "two controllers", About: "of one owner; they die and start again",
			Acts: acts, Users: 15, Faults: 8, Crashes: 2, Behind: 2, Controllers: 2, Outcomes: outcomes, Relists: true},
		World{Name: "two owners", About: "of the same children; handlers hear late",
			Owners: []string{"a", "b"}, Acts: two, Users: 20, Faults: 8, Outcomes: outcomes, Rollouts: EachWrite, HandlersLag: true},
		World{Name: "renames", About: "and little else, so that the controller comes to delete",
			Start: []string{"create a web"}, Acts: append([]string{"drift web", "edit api", "hand api a"}, ofOwner...), Users: 20, Faults: 2, Outcomes: outcomes},
	)
}
