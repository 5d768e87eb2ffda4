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

// The command version.

package command

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"example.com/sample-controller/devcluster/internal/cluster"
)

func version(w io.Writer) int {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fmt.Fprintln(os.Stderr, "devcluster: built without module information; build it with the go command")
		return exitFailure
	}
	for _, module := range []struct{ name, path string }{
		{"Kubernetes", "k8s.io/kubernetes"},
		{"etcd", "go.etcd.io/etcd/server/v3"},
		{"KWOK", "sigs.k8s.io/kwok"},
	} {
		fmt.Fprintf(w, "%-10s  %s\n", module.name, moduleVersion(info, module.path))
	}
	fmt.Fprintf(w, "%-10s  %s\n", "Go", info.GoVersion)
	fmt.Fprintf(w, "%-10s  %s\n", "Emulates", strings.Join(cluster.EmulatedVersions(), " "))
	return exitOK
}

func moduleVersion(info *debug.BuildInfo, path string) string {
	for _, dep := range info.Deps {
		if dep.Path == path {
			return dep.Version
		}
	}
	return "unknown"
}
