// SPDX-License-Identifier: Apache-2.0

// Package options defines the command line: the flags, their defaults and their
// validation, and what depends on them alone: the client configuration, the log, the
// servers, the Lease of the election, the memory limit. This file has Parse, the version
// and the remaining flags.
package options

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/sample-controller/internal/names"
)

// DefaultImage is the image of a Foo's Pods if -image is not set.
const DefaultImage = "nginx:latest"

// Options are the command's flags.
type Options struct {
	// Namespace is the namespace whose Foos are reconciled. Empty means all namespaces.
	Namespace string
	// MaxRollouts is how many Foos at a time restart their Pods unasked.
	MaxRollouts int
	// Image is the image of the container nginx in the Deployments of all Foos.
	Image string
	// Workers is the number of Foos that are synced concurrently.
	Workers int
	// Resync is the period of the resync of all Foos; 0 turns it off.
	Resync time.Duration
	// RequestTimeout bounds each call to the API server.
	RequestTimeout time.Duration

	Cluster  Cluster
	Election Election
	Serving  Serving
	Logging  Logging

	version bool
}

// ErrAnswered means that the command line only asked for the flags or the version, and
// Parse has printed them.
var ErrAnswered = errors.New("answered")

// Parse reads the command line. For -help and -version it prints to answer and returns
// ErrAnswered. Any other error is one line that says what is wrong and what is valid.
// Together with such an error it returns the options parsed so far, which say how to log
// the error.
func Parse(args []string, answer io.Writer) (*Options, error) {
	flags := flag.NewFlagSet(names.Controller, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var opts Options
	opts.addFlags(flags)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(answer, "%s reconciles the Foos of a cluster: it makes a Deployment for each.\n\nUsage: %s [flags]\n\n", names.Controller, names.Controller)
		flags.SetOutput(answer)
		flags.PrintDefaults()
		return nil, ErrAnswered
	case err != nil:
		return &opts, fmt.Errorf("%w (see -help)", err)
	case opts.version:
		fmt.Fprint(answer, currentVersion())
		return nil, ErrAnswered
	}
	return &opts, opts.validate(flags)
}

// addFlags adds the flags, with their defaults, to a flag set.
func (o *Options) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", metav1.NamespaceAll,
		"Namespace whose Foos to reconcile. If not set: all namespaces.")
	flags.IntVar(&o.MaxRollouts, "max-rollouts", 10,
		"Number of Foos at a time whose Pods are restarted because of another -image, or to repair what somebody has changed; of a namespace half of it. 0 means any number. What a Foo's spec asks for does not wait.")
	flags.StringVar(&o.Image, "image", DefaultImage,
		"Image of the container nginx in the Deployments of all Foos, for example from a mirror. Changing it rolls out all of them. The admission policy must allow it.")
	flags.IntVar(&o.Workers, "workers", 2,
		"Number of Foos that are synced concurrently.")
	flags.DurationVar(&o.Resync, "resync", 30*time.Second,
		"Period of the resync, which syncs every Foo again even if nothing changed. It sends no request for a Foo that is in its desired state. 0 turns it off.")
	flags.DurationVar(&o.RequestTimeout, "request-timeout", 30*time.Second,
		"Timeout of a single request to the API server, which is then retried later.")
	flags.BoolVar(&o.version, "version", false,
		"Print the versions of this program, of Go and of the Kubernetes modules in it, and exit.")
	o.Cluster.addFlags(flags)
	o.Election.addFlags(flags)
	o.Serving.addFlags(flags)
	o.Logging.addFlags(flags)
}

// validate returns an error that names each flag with an invalid value, and what the flag
// accepts.
func (o *Options) validate(flags *flag.FlagSet) error {
	var problems []string
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	if flags.NArg() > 0 {
		refuse("unexpected argument %q: this command takes flags only", flags.Arg(0))
	}
	if o.Image == "" {
		refuse("-image=%q: must be the name of an image", o.Image)
	}
	if o.MaxRollouts < 0 {
		refuse("-max-rollouts=%d: must be 0 (any number), or more", o.MaxRollouts)
	}
	if o.Workers < 1 {
		refuse("-workers=%d: must be 1 or more", o.Workers)
	}
	if o.Resync != 0 && o.Resync < time.Second {
		refuse("-resync=%v: must be 0 (off), or 1s or more", o.Resync)
	}
	if o.RequestTimeout < time.Second {
		refuse("-request-timeout=%v: must be 1s or more", o.RequestTimeout)
	}
	if o.Namespace != metav1.NamespaceAll {
		for _, problem := range validation.IsDNS1123Label(o.Namespace) {
			refuse("-namespace=%q: %s", o.Namespace, problem)
		}
	}
	problems = append(problems, o.Cluster.problems()...)
	problems = append(problems, o.Election.problems()...)
	problems = append(problems, o.Serving.problems()...)
	problems = append(problems, o.Logging.problems(flags)...)
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// memoryLimitVariable is the environment variable with the container's memory limit, in
// bytes.
const memoryLimitVariable = "MEMORY_LIMIT"

// LimitMemory sets the limit at which Go's garbage collector keeps the heap to 90 % of
// the container's memory limit, $MEMORY_LIMIT. The rest is for memory that Go does not
// count, such as the program itself, and for a heap that exceeds its limit a little.
// GOMEMLIMIT in the environment takes precedence.
//
// GOMEMLIMIT alone is not enough, because a manifest can refer to the container's limit
// but not to 90 % of it.
func LimitMemory() error {
	text := os.Getenv(memoryLimitVariable)
	if text == "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return fmt.Errorf("%s=%s: must be a number of bytes", memoryLimitVariable, text)
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	return nil
}

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
