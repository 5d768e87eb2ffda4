// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// commitTime is the time of the commits that scripts make.
const commitTime = "2026-05-04T03:02:01Z"

// dir is a test's directory.
type dir struct {
	*testing.T
	path string
}

// ofMake matches the variables of git, and of the make that runs the test.
var ofMake = regexp.MustCompile(`^(GIT_.*|IMAGE.*|MAKE.*|MFLAGS)$`)

// try runs a script that may fail, without the variables of the make that runs the test, and
// without the user's settings of git and Docker.
func (d *dir) try(script string, arguments ...string) (stdout, stderr string, err error) {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), "bash", append([]string{"-o", "errexit", "-c", script, "bash"}, arguments...)...)
	cmd.Dir = d.path
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !ofMake.MatchString(name) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "DOCKER_CONFIG=/nonexistent",
		"GIT_AUTHOR_NAME=someone", "GIT_AUTHOR_EMAIL=", "GIT_AUTHOR_DATE="+commitTime,
		"GIT_COMMITTER_NAME=someone", "GIT_COMMITTER_EMAIL=", "GIT_COMMITTER_DATE=2026-05-04T05:02:01+02:00")
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	err = cmd.Run()
	return out.String(), errors.String(), err
}

// bash runs a script, and returns what it prints to standard output.
func (d *dir) bash(script string, arguments ...string) string {
	d.Helper()
	stdout, stderr, err := d.try(script, arguments...)
	if err != nil {
		d.Fatalf("%s: %v\n%s%s", script, err, stdout, stderr)
	}
	return stdout
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
