// SPDX-License-Identifier: Apache-2.0

// The programs to measure, how they are built, and the machine that they run on.

package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"

	"example.com/sample-controller/test/bench/internal/results"
	"example.com/sample-controller/test/testcluster"
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
	// Versions holds the versions of upstream's module and of controller-runtime.
	Versions map[string]string
}

const (
	upstreamModule = "k8s.io/sample-controller"
	runtimeModule  = "sigs.k8s.io/controller-runtime"
)

// Build builds all programs in folder. repository is the root of this repository.
func Build(ctx context.Context, repository, folder string) (*Set, error) {
	bench, set := filepath.Join(repository, "test/bench"), &Set{Versions: map[string]string{}}
	upstream, errUpstream := download(ctx, bench, upstreamModule)
	onRuntime, errRuntime := download(ctx, bench, runtimeModule)
	if err := errors.Join(errUpstream, errRuntime); err != nil {
		return nil, err
	}
	set.Versions[upstreamModule], set.Versions[runtimeModule] = upstream.Version, onRuntime.Version
	program := func(name string) Program { return Program{Name: name, Path: filepath.Join(folder, name)} }
	set.Ours, set.Upstream, set.Unlimited = program("ours"), program("upstream"), program("upstream-unlimited")
	set.ControllerRuntime, set.Bare = program("controller-runtime"), program("bare")
	return set, errors.Join(
		BuildOurs(ctx, repository, set.Ours.Path),
		goBuild(ctx, bench, set.Upstream.Path, upstreamModule),
		buildUnlimited(ctx, bench, upstream.Dir, set.Unlimited.Path),
		goBuild(ctx, bench, set.ControllerRuntime.Path, "./contender/controllerruntime"),
		goBuild(ctx, bench, set.Bare.Path, "./contender/bare"))
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

// buildUnlimited builds upstream's module, whose source is in a directory, with our main.go. It
// builds a copy, because the module cache is read-only, and go build -overlay rejects files
// in it.
func buildUnlimited(ctx context.Context, bench, source, output string) error {
	scratch, err := os.MkdirTemp("", "foo-bench-upstream-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	copied, modFile := filepath.Join(scratch, "upstream"), filepath.Join(scratch, "go.mod")
	unlimited, err := os.ReadFile(filepath.Join(bench, "contender/upstream-main.go.txt"))
	requirements, errMod := os.ReadFile(filepath.Join(bench, "go.mod"))
	sums, errSum := os.ReadFile(filepath.Join(bench, "go.sum"))
	if err := errors.Join(err, errMod, errSum); err != nil {
		return err
	}
	requirements = append(requirements, "\nreplace "+upstreamModule+" => "+copied+"\n"...)
	err = errors.Join(
		os.CopyFS(copied, os.DirFS(source)),
		os.WriteFile(filepath.Join(copied, "main.go"), unlimited, 0o600),
		os.WriteFile(modFile, requirements, 0o600),
		os.WriteFile(filepath.Join(scratch, "go.sum"), sums, 0o600))
	if err != nil {
		return err
	}
	return goBuild(ctx, bench, output, upstreamModule, "-modfile="+modFile)
}

// module is what the go command says about a module. Dir is the directory with its source.
type module struct{ Version, Dir string }

// download fetches a module in the version that the module in a directory requires.
func download(ctx context.Context, folder, path string) (m module, err error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	command.Dir, command.Env = folder, append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		return m, fmt.Errorf("downloading %s for the module in %s: %w", path, folder, err)
	}
	return m, nil
}

// goBuild builds with the flags of hack/build.sh, to share its build cache.
func goBuild(ctx context.Context, folder, output, pkg string, flags ...string) error {
	return testcluster.Build(ctx, folder, output, pkg, append(flags, "-ldflags=-s -w")...)
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

// Versions returns the versions of Go, of the components of devcluster, and of the
// controller of this repository.
func Versions(ctx context.Context, devcluster, ours string) map[string]string {
	versions := map[string]string{"Go": runtime.Version()}
	if out, err := exec.CommandContext(ctx, devcluster, "version").Output(); err == nil {
		for line := range bytes.Lines(out) {
			if fields := strings.Fields(string(line)); len(fields) == 2 {
				versions[fields[0]] = fields[1]
			}
		}
	}
	if out, err := exec.CommandContext(ctx, ours, "-version").Output(); err == nil {
		for line := range bytes.Lines(out) {
			if commit, ok := strings.CutPrefix(string(line), "commit "); ok {
				versions["ours"] = "commit " + strings.TrimSpace(commit)
			}
		}
	}
	return versions
}
