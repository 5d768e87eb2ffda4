// SPDX-License-Identifier: Apache-2.0

// Package program builds the programs to measure.
package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"example.com/sample-controller/test/bench/contender/upstream"
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

// shipped is the environment that artifacts/deploy/workload/deployment.yaml sets, as far
// as it affects the measurements.
var shipped = []string{"GOMAXPROCS=1"}

// Ours returns the controller of this repository, built at path, with the environment of
// its Deployment.
func Ours(path string) Program {
	return Program{Name: "ours", Path: path, Env: shipped}
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

// Build builds all programs in folder, which serves as a cache for the next run, and
// copies them to copies, so that a later build does not affect this run. repository is
// the root of this repository. ours, if not empty, is the path of a controller that is
// already built. Build reports its progress by say.
func Build(ctx context.Context, repository, folder, copies, ours string, say func(format string, args ...any)) (*Set, error) {
	bench, thirdParty := filepath.Join(repository, "test/bench"), filepath.Join(repository, "test/thirdparty")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	path := func(name string) string { return filepath.Join(folder, name) }
	set := &Set{Versions: map[string]string{}}
	for _, module := range []struct{ folder, path string }{{thirdParty, upstreamModule}, {bench, runtimeModule}} {
		version, err := goList(ctx, module.folder, module.path, "{{.Version}}")
		if err != nil {
			return nil, err
		}
		set.Versions[module.path] = version
	}
	say("building our controller, upstream's with and without its limiter, the one on controller-runtime, and the bare loop")
	if ours == "" {
		if err := BuildOurs(ctx, repository, path("ours")); err != nil {
			return nil, err
		}
		ours = filepath.Join(copies, "ours")
	}
	err := errors.Join(
		goBuild(ctx, thirdParty, path("upstream"), upstreamModule),
		buildUnlimited(ctx, thirdParty, path("unlimited")),
		goBuild(ctx, bench, path("controllerruntime"), "./contender/controllerruntime"),
		goBuild(ctx, bench, path("bare"), "./contender/bare"))
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(copies, os.DirFS(folder)); err != nil {
		return nil, err
	}
	clusterWithCopies := func(name string) string { return filepath.Join(copies, name) }
	set.Ours = Ours(ours)
	set.Upstream = Program{Name: "upstream", Path: clusterWithCopies("upstream")}
	set.Unlimited = Program{Name: "upstream-unlimited", Path: clusterWithCopies("unlimited")}
	set.ControllerRuntime = Program{Name: "controller-runtime", Path: clusterWithCopies("controllerruntime")}
	set.Bare = Program{Name: "bare", Path: clusterWithCopies("bare")}
	return set, nil
}

// BuildOurs builds the controller of this repository.
func BuildOurs(ctx context.Context, repository, output string) error {
	return run(ctx, repository, "hack/build.sh", "-stamp", ".", ".", output)
}

// buildUnlimited builds upstream's module with our main.go. It builds a copy, because the
// module cache is read-only, and go build -overlay rejects files in it.
func buildUnlimited(ctx context.Context, thirdParty, output string) error {
	source, err := goList(ctx, thirdParty, upstreamModule, "{{.Dir}}")
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "foo-bench-upstream-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := copySource(scratch, source); err != nil {
		return fmt.Errorf("copying %s: %w", source, err)
	}
	if err := os.WriteFile(filepath.Join(scratch, "main.go"), upstream.Main, 0o644); err != nil {
		return err
	}
	return goBuild(ctx, scratch, output, ".")
}

// copySource copies a module. Unlike those in the module cache, the copies are writable.
func copySource(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o644)
	})
}

func goList(ctx context.Context, folder, module, format string) (string, error) {
	// go mod download is needed for the Dir of a module that only a build would fetch.
	if err := run(ctx, folder, "go", "mod", "download", module); err != nil {
		return "", err
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", format, module)
	list.Dir = folder
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("finding %s in the module in %s: %w", module, folder, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// goBuild builds with the flags of hack/build.sh, to share its build cache.
func goBuild(ctx context.Context, folder, output, pkg string) error {
	return run(ctx, folder, "go", "build", "-ldflags=-s -w", "-o", output, pkg)
}

func run(ctx context.Context, folder, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = folder
	if filepath.Dir(name) != "." {
		command.Path, command.Err = filepath.Join(folder, name), nil
	}
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s in %s: %w\n%s", name, strings.Join(args, " "), folder, err, out)
	}
	return nil
}
