// SPDX-License-Identifier: Apache-2.0

// The copy of the tree and the environment in which a document runs.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sandbox contains a copy of the tree and a home folder. A document runs in it, and
// shares only Go's caches with the caller.
type sandbox struct {
	scratch string
	copy    string
	home    string
	env     []string
}

// built are the programs that are copied with the tree. The documents' make targets
// rebuild those that are out of date.
var built = []string{"devcluster", "sample-controller", "demo", "kubectl-foo"}

// newSandbox makes a sandbox from the tree in root.
func newSandbox(ctx context.Context, root string) (*sandbox, error) {
	scratch, err := os.MkdirTemp("", "docs-")
	if err != nil {
		return nil, err
	}
	box := &sandbox{
		scratch: scratch,
		copy:    filepath.Join(scratch, "sample-controller"),
		home:    filepath.Join(scratch, "home"),
	}
	if err := box.fill(ctx, root); err != nil {
		return nil, errors.Join(err, box.remove())
	}
	return box, nil
}

func (box *sandbox) fill(ctx context.Context, root string) error {
	for _, folder := range []string{box.home, box.in("tmp"), box.in("path"), box.in("run")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
	}
	if _, err := output(ctx, root, "bash", "-ec", cloneTree, "bash", box.copy); err != nil {
		return err
	}
	for _, name := range built {
		program := filepath.Join(root, "bin", name)
		if _, err := os.Stat(program); err != nil {
			continue
		}
		if _, err := output(ctx, root, "cp", "-p", program, filepath.Join(box.copy, "bin", name)); err != nil {
			return err
		}
	}
	kubectl := fmt.Sprintf("#!/usr/bin/env bash\nexec %q kubectl \"$@\"\n", filepath.Join(box.copy, "bin", "devcluster"))
	if err := os.WriteFile(box.in("path", "kubectl"), []byte(kubectl), 0o700); err != nil {
		return err
	}
	// Otherwise the go command leaves a process that writes to this folder after the
	// sandbox was removed.
	telemetry := box.in("home", ".config", "go", "telemetry")
	if err := os.MkdirAll(telemetry, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o600); err != nil {
		return err
	}
	env, err := box.environment(ctx, root)
	box.env = env
	return err
}

// in returns a path in the scratch folder.
func (box *sandbox) in(parts ...string) string {
	return filepath.Join(append([]string{box.scratch}, parts...)...)
}

// remove removes the sandbox. It retries, because a killed process may still write for a
// moment.
func (box *sandbox) remove() error {
	for range 20 {
		if err := os.RemoveAll(box.scratch); err == nil {
			return nil
		}
		<-time.After(lookEvery)
	}
	return os.RemoveAll(box.scratch)
}

// kept are the caller's variables that a document's commands also get: those that the
// network and the go command need.
var kept = []string{
	"USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "CC", "CGO_ENABLED", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

func (box *sandbox) environment(ctx context.Context, root string) ([]string, error) {
	env := []string{"HOME=" + box.home, "TMPDIR=" + box.in("tmp"), "TERM=dumb",
		"PATH=" + box.in("path") + string(os.PathListSeparator) + os.Getenv("PATH")}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(kept, name) || strings.HasPrefix(name, "GO") && name != "GO_TEST_FLAGS" {
			env = append(env, variable)
		}
	}
	// Their defaults depend on HOME, which differs.
	names := []string{"GOENV", "GOPATH", "GOCACHE", "GOMODCACHE"}
	values, err := output(ctx, root, "go", append([]string{"env"}, names...)...)
	if err != nil {
		return nil, err
	}
	for i, value := range strings.Split(strings.TrimSuffix(values, "\n"), "\n") {
		env = append(env, names[i]+"="+value)
	}
	return env, nil
}

// cloneTree makes the clone $1 of the repository in the working directory, and commits the
// uncommitted changes of its work tree there, because documents show commands that refuse an
// unclean one.
const cloneTree = `
git clone --quiet --no-hardlinks --no-checkout . "$1" ||
	{ echo "the documents run in a clone of the tree, so it must be a git repository of yours with a commit" >&2; exit 1; }
clone=(git --git-dir="$1/.git" --work-tree=.)
"${clone[@]}" read-tree HEAD
"${clone[@]}" add --all
cd "$1"
git diff --cached --quiet ||
	git -c user.name=docs -c user.email=docs@localhost commit --quiet --message="Uncommitted changes"
git reset --quiet --hard
mkdir -p bin`

// output runs a program, and returns what it prints to standard output.
func output(ctx context.Context, folder, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Stdout, command.Stderr = folder, &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
