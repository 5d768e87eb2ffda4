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

// example is a project to make, and the tests to run in it.
type example struct {
	say   string
	args  []string
	quick bool // one of the three of make test-new-project
	e2e   bool // run on a cluster if NEW_PROJECTS=all
}

var examples = []example{
	{"an acronym, a module with a major version, a group with a dash, another version", []string{
		"-module=github.com/acme/edge-routes/v2", "-group=my-team.acme.dev", "-version=v1beta1", "-kind=HTTPRoute", "-short=hr",
	}, true, true},
	{"an irregular plural, and a group like one of Kubernetes'", []string{
		"-module=github.com/acme/policies", "-group=apps.acme.dev", "-version=v1", "-kind=Policy",
	}, true, true},
	{"a kind that begins with the old one, lean", []string{
		"-lean", "-module=example.org/food.trucks", "-group=food.example.org", "-kind=FoodTruck", "-short=truck",
	}, true, false},
	{"a second kind", []string{
		"-module=github.com/acme/gateway", "-group=net.acme.dev", "-version=v1", "-kind=Backend", "-add-kind=Redirect", "-child=networking.k8s.io/v1/Ingress",
	}, false, true},
	{"several words, one of which is the name of a variable", []string{
		"-module=github.com/acme/cache-controller", "-group=cache.acme.dev", "-version=v2alpha1", "-kind=CacheCluster", "-plural=cacheclusters",
	}, false, false},
	{"a plural that equals the kind", []string{
		"-module=example.org/Farm/v3", "-group=farm.example.org", "-version=v1", "-kind=Sheep", "-plural=sheep",
	}, false, false},
}

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
			if err := run(t.Context(), append(a.args, "-dir="+dir), log{t}); err != nil {
				t.Fatal(err)
			}
			for _, check := range checksOf(a, which == "all") {
				t.Run(strings.Join(check, " "), func(t *testing.T) { runIn(t, dir, check...) })
			}
		})
	}
}

// checksOf returns the commands that must succeed in a new project: for those that run on
// a cluster, the commands that an owner would run; for the others, checks of each part.
func checksOf(a example, all bool) [][]string {
	if all && a.e2e {
		return [][]string{{"make", "test"}, {"make", "demo", "DEMO_FLAGS=-exit"}, {"git", "diff", "--exit-code"}}
	}
	checks := [][]string{
		{"hack/verify-codegen.sh"},
		{"hack/check.sh", "fmt"},
		{"hack/check.sh", "shellcheck"},
		{"bash", "-c", goTests},
		{"git", "diff", "--exit-code"},
	}
	if all && !slices.Contains(a.args, "-lean") {
		checks = append(checks, []string{"hack/check.sh", "tidy"}, []string{"hack/check.sh", "codegen"}, []string{"make", "test-image"})
	}
	return checks
}

// goTests runs the new project's unit tests with the flags of hack/build.sh and without
// the race detector, so that most imported packages are in the build cache.
const goTests = `export GOFLAGS="-trimpath -buildvcs=false" CGO_ENABLED=0 GOWORK=off
go test -vet=off ./... || exit
for module in test/fuzz test/policy test/waiters tools/image test/chart; do
	[[ ! -d "${module}" ]] || (cd "${module}" && go test -vet=off .) || exit
done`

// runIn runs a command in a folder.
func runIn(t *testing.T, dir string, command ...string) {
	t.Helper()
	started := time.Now()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
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
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	t.Logf("%v: %v", command, time.Since(started).Round(time.Second))
}

// log is a writer to a test's log.
type log struct{ *testing.T }

func (l log) Write(text []byte) (int, error) {
	l.Log(strings.TrimSpace(string(text)))
	return len(text), nil
}
