// SPDX-License-Identifier: Apache-2.0

// Package scripts runs scripts in the directories of tests.
package scripts

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// CommitTime is the time of the commits that scripts make.
const CommitTime = "2026-05-04T03:02:01Z"

// Dir is a test's directory.
type Dir struct {
	*testing.T
	Path string
}

// ofMake matches the variables of git, and of the make that runs the test.
var ofMake = regexp.MustCompile(`^(GIT_.*|IMAGE.*|MAKE.*|MFLAGS)$`)

// Try runs a script that may fail, without the variables of the make that runs the test, and
// without the user's settings of git and Docker.
func (f *Dir) Try(script string, arguments ...string) (stdout, stderr string, err error) {
	f.Helper()
	cmd := exec.CommandContext(f.Context(), "bash", append([]string{"-o", "errexit", "-c", script, "bash"}, arguments...)...)
	cmd.Dir = f.Path
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !ofMake.MatchString(name) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "DOCKER_CONFIG=/nonexistent",
		"GIT_AUTHOR_NAME=someone", "GIT_AUTHOR_EMAIL=", "GIT_AUTHOR_DATE="+CommitTime,
		"GIT_COMMITTER_NAME=someone", "GIT_COMMITTER_EMAIL=", "GIT_COMMITTER_DATE=2026-05-04T05:02:01+02:00")
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	err = cmd.Run()
	return out.String(), errors.String(), err
}

// Bash runs a script, and returns what it prints to standard output.
func (f *Dir) Bash(script string, arguments ...string) string {
	f.Helper()
	stdout, stderr, err := f.Try(script, arguments...)
	if err != nil {
		f.Fatalf("%s: %v\n%s%s", script, err, stdout, stderr)
	}
	return stdout
}
