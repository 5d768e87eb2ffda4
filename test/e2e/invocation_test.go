// SPDX-License-Identifier: Apache-2.0

// How the tests were invoked: by the name of the package, or by a pattern.

package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// matchedByPattern reports whether the command line of a go command names packages by a
// pattern, as in "go test ./...". Whoever types that wants to test the code, and not the
// cluster that the shell happens to have in KUBECONFIG.
func matchedByPattern(commandLine []string) bool {
	return slices.ContainsFunc(commandLine, func(argument string) bool {
		return !strings.HasPrefix(argument, "-") && strings.HasSuffix(argument, "...")
	})
}

// parentCommandLine returns the command line of the parent process, or nil if it can't be
// read.
func parentCommandLine() []string {
	parent := strconv.Itoa(os.Getppid())
	if line, err := os.ReadFile("/proc/" + parent + "/cmdline"); err == nil {
		return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	}
	if line, err := exec.Command("ps", "-o", "args=", "-p", parent).Output(); err == nil {
		return strings.Fields(string(line))
	}
	return nil
}

// TestPatternsAreRecognized needs no cluster, but it is in this package because it is
// about skipping the package's tests.
func TestPatternsAreRecognized(t *testing.T) {
	for line, want := range map[string]bool{
		"go test ./...":                             true,
		"go test -count=1 ./test/...":               true,
		"go test example.com/sample-controller/...": true,
		"go test ./test/e2e":                        false,
		"go test -v -run=Test... ./test/e2e":        false,
		"go test":                                   false,
		"":                                          false,
	} {
		if got := matchedByPattern(strings.Fields(line)); got != want {
			t.Errorf("%q is matched by a pattern: %v, want %v", line, got, want)
		}
	}
}
