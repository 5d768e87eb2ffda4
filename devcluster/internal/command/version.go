// SPDX-License-Identifier: Apache-2.0

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
