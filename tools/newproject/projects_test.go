// SPDX-License-Identifier: Apache-2.0

// Tests that create whole projects and run their checks.

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// examples are projects to make. Those called quick are made by make test-new-project; the full
// ones among them run on a cluster with NEW_PROJECTS=all.
var examples = []struct {
	say   string
	args  string
	quick bool
	all   bool // run make test if NEW_PROJECTS=all
}{
	{
		"an acronym, a major version, a group with a dash, and a second kind",
		"-module=github.com/acme/edge-routes/v2 -group=my-team.acme.dev -version=v1beta1 -kind=HTTPRoute -short=hr -add-kind=Redirect -child=networking.k8s.io/v1/Ingress", true, true,
	},
	{"a kind that begins with the old one, lean", "-lean -module=example.org/food.trucks -group=food.example.org -kind=FoodTruck -short=truck", true, true},
	{"taken names, an irregular plural, a group like one of Kubernetes'", "-module=github.com/acme/policies -group=apps.acme.dev -version=v1 -kind=Policy", false, false},
	{"several words, one of which is a variable", "-module=github.com/acme/cache-controller -group=cache.acme.dev -version=v2alpha1 -kind=CacheCluster -plural=cacheclusters", false, false},
	{"a plural that equals the kind", "-module=example.org/Farm/v3 -group=farm.example.org -version=v1 -kind=Sheep -plural=sheep", false, false},
}

// quickChecks must succeed in a new project. They compile with the flags of hack/build.sh and
// without the race detector, so that most imported packages are in the build cache. All of the
// simulation is run with the added kind, of which docs/second-kind.md runs a part.
var quickChecks = []string{"hack/check.sh fmt", "hack/check.sh shellcheck", "hack/check.sh tidy", `
export GOFLAGS="-trimpath -buildvcs=false" CGO_ENABLED=0 GOWORK=off
statuses=${PWD}/_output/statuses # that the simulation records, for test/waiters
mkdir -p "${statuses}"
RECORDED_STATUSES="${statuses}" go test -vet=off . || exit
go test -vet=off $(go list ./... | sed 1d) || exit
for module in test/policy test/waiters test/chart; do
	[[ ! -d "${module}" ]] || (cd "${module}" && RECORDED_STATUSES="${statuses}" go test -vet=off .) || exit
done`}

// TestNewProjects makes projects and runs their own checks. NEW_PROJECTS selects the
// projects: quick or all. Each takes minutes.
func TestNewProjects(t *testing.T) {
	which := os.Getenv("NEW_PROJECTS")
	if which != "quick" && which != "all" {
		t.Skip("NEW_PROJECTS is neither quick nor all: make test-new-project sets it")
	}
	for _, a := range examples {
		if which == "quick" && !a.quick {
			continue
		}
		t.Run(a.say, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new")
			if err := run(t.Context(), append(strings.Fields(a.args), "-dir="+dir), t.Output()); err != nil {
				t.Fatal(err)
			}
			checks := quickChecks
			if strings.HasPrefix(a.args, "-lean") { // once is enough: newproject has just generated it
				checks = append(checks, "hack/verify-codegen.sh")
			}
			if which == "all" && a.all {
				checks = []string{"make test"}
			}
			for _, check := range append(checks, "git diff --exit-code") {
				t.Run(check, func(t *testing.T) { runIn(t, dir, check) })
			}
		})
	}
}

// runIn runs a command in a folder.
func runIn(t *testing.T, dir, command string) {
	t.Helper()
	started := time.Now()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir = dir
	// The new project's make must not get the variables of the make that runs this test.
	for _, variable := range gitEnvironment() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "MAKE") && !slices.Contains([]string{"MFLAGS", "KUBECONFIG", "E2E_KUBECONFIG", "GO_TEST_FLAGS", "NEW_PROJECTS", "GOFLAGS", "GOWORK"}, name) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	t.Logf("%s: %v", command, time.Since(started).Round(time.Second))
}
