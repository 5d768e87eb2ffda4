// SPDX-License-Identifier: Apache-2.0

// The programs to measure, and how they are built.

package measure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program is a controller, or the bare loop: it takes -kubeconfig and runs until it is
// stopped.
type Program struct {
	Name string
	Path string
	Args []string
	// Env is added to the benchmark's own environment, as NAME=value.
	Env []string
}

// Installed is the environment that artifacts/deploy/workload/deployment.yaml sets, as far as
// it affects the measurements. Without it, a program runs as with go run.
var Installed = []string{"GOMAXPROCS=1"}

// In returns a copy of a program with another environment.
func (p Program) In(env []string) Program {
	p.Env = env
	return p
}

// With returns a copy of a program with another name and additional arguments.
func (p Program) With(name string, args ...string) Program {
	return Program{Name: name, Path: p.Path, Args: append(append([]string(nil), p.Args...), args...), Env: p.Env}
}

// Set holds all programs to measure, by name, to be run as Installed.
type Set struct {
	Programs map[string]Program
	// Machine describes the machine, and Versions holds the versions of what is compared and of
	// what it runs on.
	Machine  string
	Versions map[string]string
}

// Build builds all programs in folder. repository is the root of this repository.
func Build(ctx context.Context, repository, folder string) (*Set, error) {
	build := exec.CommandContext(ctx, filepath.Join(repository, "test/bench/contenders.sh"), folder)
	build.Stderr = os.Stderr
	out, err := build.Output()
	if err != nil {
		return nil, fmt.Errorf("building the contenders: %w", err)
	}
	set := &Set{Programs: map[string]Program{}, Versions: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		set.Versions[name] = version
	}
	set.Machine = set.Versions["machine"]
	delete(set.Versions, "machine")
	for _, name := range []string{"ours", "upstream", "upstream-unlimited", "controller-runtime", "bare"} {
		set.Programs[name] = Program{Name: name, Path: filepath.Join(folder, name), Env: Installed}
	}
	return set, nil
}

// BuildOurs builds the controller of this repository.
func BuildOurs(ctx context.Context, repository, output string) error {
	build := exec.CommandContext(ctx, filepath.Join(repository, "hack/build.sh"), "-stamp", ".", ".", output)
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the controller: %w\n%s", err, out)
	}
	return nil
}
