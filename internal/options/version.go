// SPDX-License-Identifier: Apache-2.0

// The answer to -version.

package options

import (
	"cmp"
	"fmt"
	"path"
	"runtime/debug"
	"strings"

	"example.com/sample-controller/internal/names"
)

// currentVersion describes the version of the running program.
func currentVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describeVersion(info)
}

// describeVersion describes, one fact per line, what the go command recorded in a program
// about its origin.
func describeVersion(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	version := info.Main.Version // a tag, or a pseudo-version made of the commit
	if version == "(devel)" {
		version = "" // the go command does not know it
	}
	commit := cmp.Or(settings["vcs.revision"], "unknown: not built in a git clone")
	if settings["vcs.modified"] == "true" {
		commit += ", with uncommitted changes"
	}

	var text strings.Builder
	fmt.Fprintf(&text, "%s %s\n", names.Controller, cmp.Or(version, "(version unknown)"))
	line := func(name, value string) {
		fmt.Fprintf(&text, "%-20s %s\n", name, cmp.Or(value, "unknown"))
	}
	line("commit", commit)
	line("committed", settings["vcs.time"])
	line("go", strings.TrimSpace(info.GoVersion+" "+path.Join(settings["GOOS"], settings["GOARCH"])))
	for _, module := range []string{"k8s.io/client-go", "k8s.io/api", "k8s.io/apimachinery"} {
		line(module, dependency(info, module))
	}
	return text.String()
}

// dependency returns the version of the module at path, and its replacement if it has
// one.
func dependency(info *debug.BuildInfo, path string) string {
	for _, module := range info.Deps {
		switch {
		case module.Path != path:
		case module.Replace == nil:
			return module.Version
		default:
			return strings.TrimSpace(module.Version + " => " + module.Replace.Path + " " + module.Replace.Version)
		}
	}
	return ""
}
