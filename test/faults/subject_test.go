/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// subject is a controller to test: any program that takes -kubeconfig.
type subject struct {
	name string
	path string
	// version is that of upstream's module.
	version string
	// flags are given besides -kubeconfig.
	flags []string
	// namespaced programs are told by -namespace what to look after; what
	// others see is confined by the proxy.
	namespaced bool
	// conditions tells that the program reports conditions and
	// observedGeneration, which the oracle then holds it to.
	conditions bool
	// resyncs tells that the program writes at each resync by design: one status
	// and one event for each Foo. There is a row for that; elsewhere it is
	// overlooked, so that each row says something of its own.
	resyncs bool
	// elects tells that the program can elect a leader.
	elects bool
}

const moduleRoot = "../.."

// ours builds the controller in a folder of this repository's root module. It
// runs with its resync off, so that nothing is healed by it.
func ours(ctx context.Context, source, output string) (*subject, error) {
	if err := goBuild(ctx, source, output, "."); err != nil {
		return nil, err
	}
	return &subject{
		name: "ours", path: output, flags: []string{"-resync=0", "-v=2"},
		namespaced: true, conditions: true, elects: true,
	}, nil
}

// upstream builds kubernetes/sample-controller, of the version that
// test/thirdparty asks for. Its resync of 30 s can't be turned off.
func upstream(ctx context.Context, folder string) (*subject, error) {
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

func goBuild(ctx context.Context, folder, output, pkg string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", output, pkg)
	build.Dir = folder
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", pkg, folder, err, out)
	}
	return nil
}
