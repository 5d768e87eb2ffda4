// SPDX-License-Identifier: Apache-2.0

// The programs to measure, how they are built, and the machine that they run on.

package measure

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"

	"example.com/sample-controller/test/bench/internal/results"
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

// Set holds all programs to measure.
type Set struct {
	Ours, Upstream, Unlimited, ControllerRuntime, Bare Program
	// Versions holds the versions of what is compared and of what it runs on.
	Versions map[string]string
}

// Build builds all programs in folder, to be run as Installed. repository is the root of this
// repository.
func Build(ctx context.Context, repository, folder string) (*Set, error) {
	build := exec.CommandContext(ctx, filepath.Join(repository, "test/bench/contenders.sh"), folder)
	build.Stderr = os.Stderr
	out, err := build.Output()
	if err != nil {
		return nil, fmt.Errorf("building the contenders: %w", err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		versions[name] = version
	}
	program := func(name string) Program {
		return Program{Name: name, Path: filepath.Join(folder, name), Env: Installed}
	}
	return &Set{
		Ours: program("ours"), Upstream: program("upstream"), Unlimited: program("upstream-unlimited"),
		ControllerRuntime: program("controller-runtime"), Bare: program("bare"), Versions: versions,
	}, nil
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

// DescribeMachine describes this machine. It leaves empty what it can't read.
func DescribeMachine() results.Machine {
	m := results.Machine{Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
		m.CPU = cpus[0].ModelName
	}
	if memory, err := fs.Meminfo(); err == nil && memory.MemTotal != nil {
		m.MemoryGiB = math.Round(float64(*memory.MemTotal)/(1<<20)*10) / 10
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.OS += ", kernel " + strings.TrimSpace(string(release))
	}
	return m
}
