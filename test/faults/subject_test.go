// SPDX-License-Identifier: Apache-2.0

// The controllers under test: ours, and upstream's to compare it with.

package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// subject is a controller under test: any program that takes -kubeconfig.
type subject struct {
	name string
	path string
	// version is the version of upstream's module.
	version string
	// flags are passed in addition to -kubeconfig.
	flags []string
	// namespaced programs take -namespace. The proxy confines the others to a namespace.
	namespaced bool
	// conditions is true if the program reports conditions and observedGeneration, which
	// the oracle then checks.
	conditions bool
	// resyncs is true if the program writes a status and an Event for each Foo at each
	// resync, by design. One row checks for that; the others ignore it, so that each row
	// finds a problem of its own.
	resyncs bool
}

const moduleRoot = "../.."

// buildOurs builds the controller from a copy of this repository's root module. It runs
// without resyncs, so that they repair nothing.
func buildOurs(ctx context.Context, output string, flags ...string) (*subject, error) {
	if err := goBuild(ctx, moduleRoot, output, ".", flags...); err != nil {
		return nil, err
	}
	return &subject{
		name: "ours", path: output, flags: []string{"-resync=0", "-v=2"},
		namespaced: true, conditions: true,
	}, nil
}

// buildUpstream builds kubernetes/sample-controller in the version that test/thirdparty
// requires. Its resync of 30 s can't be turned off.
func buildUpstream(ctx context.Context, folder string) (*subject, error) {
	const module = "k8s.io/sample-controller"
	source, output := filepath.Join(moduleRoot, "test/thirdparty"), filepath.Join(folder, "upstream")
	if err := goBuild(ctx, source, output, module); err != nil {
		return nil, err
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	list.Dir = source
	version, err := list.Output()
	if err != nil {
		return nil, err
	}
	return &subject{name: "upstream", path: output, version: strings.TrimSpace(string(version)), resyncs: true}, nil
}

func goBuild(ctx context.Context, folder, output, pkg string, flags ...string) error {
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, flags, []string{"-o", output, pkg})...)
	build.Dir = folder
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", pkg, folder, err, out)
	}
	return nil
}
