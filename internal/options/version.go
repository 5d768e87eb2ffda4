// SPDX-License-Identifier: Apache-2.0

// The answer to -version.

package options

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"

	"example.com/sample-controller/internal/names"
)

// buildVersion holds what the go command recorded in the program about its origin. A
// field is empty if that is not known.
type buildVersion struct {
	version   string // of this module: a tag, or a pseudo-version made of the commit
	commit    string // the full hash
	committed string // when, in UTC, in the format of RFC 3339
	modified  bool   // built from a tree with uncommitted changes
	golang    string // the Go release, such as go1.26.0
	platform  string // such as linux/amd64

	// The versions of these Kubernetes modules.
	clientGo     string
	api          string
	apimachinery string
}

// currentVersion returns the buildVersion of the running program.
func currentVersion() buildVersion {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return buildVersion{}
	}
	return versionOf(info)
}

// versionOf makes a buildVersion from info.
func versionOf(info *debug.BuildInfo) buildVersion {
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	version := buildVersion{
		commit:       settings["vcs.revision"],
		committed:    settings["vcs.time"],
		modified:     settings["vcs.modified"] == "true",
		golang:       info.GoVersion,
		clientGo:     dependency(info, "k8s.io/client-go"),
		api:          dependency(info, "k8s.io/api"),
		apimachinery: dependency(info, "k8s.io/apimachinery"),
	}
	// The go command writes "(devel)" if it does not know the module's version.
	if info.Main.Version != "(devel)" {
		version.version = info.Main.Version
	}
	if settings["GOOS"] != "" && settings["GOARCH"] != "" {
		version.platform = settings["GOOS"] + "/" + settings["GOARCH"]
	}
	return version
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

// String returns the answer to -version, one fact per line.
func (v buildVersion) String() string {
	commit := cmp.Or(v.commit, "unknown: not built in a git clone")
	if v.modified {
		commit += ", with uncommitted changes"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s\n", names.Controller, cmp.Or(v.version, "(version unknown)"))
	for _, line := range []struct{ name, value string }{
		{"commit", commit},
		{"committed", v.committed},
		{"go", strings.TrimSpace(v.golang + " " + v.platform)},
		{"k8s.io/client-go", v.clientGo},
		{"k8s.io/api", v.api},
		{"k8s.io/apimachinery", v.apimachinery},
	} {
		fmt.Fprintf(&text, "%-20s %s\n", line.name, cmp.Or(line.value, "unknown"))
	}
	return text.String()
}
