// SPDX-License-Identifier: Apache-2.0

// Package options defines the command line: the flags, their defaults and their validation.
// It also sets up what depends only on flags: the client configuration, the log, the
// servers, the Lease of the election, the memory limit.
package options

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // for -logging-format=json
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/names"
)

// DefaultImage is the image of a Foo's Pods if -image is not set.
const DefaultImage = "nginx:latest"

// Options are the command's flags.
type Options struct {
	// Namespace is the namespace whose Foos are reconciled. Empty means all namespaces.
	Namespace string
	// MaxRollouts is how many Foos may restart their Pods at the same time for a reason other
	// than a change of their spec.
	MaxRollouts int
	// FightPeriod is how long a repair must last so that the next one does not count as part of a
	// fight with another client.
	FightPeriod time.Duration
	// OmitPodUser leaves the user of new Deployments' Pods to the platform.
	OmitPodUser bool
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

// ErrAnswered means that the command line only requested help or the version, and Parse has
// printed it.
var ErrAnswered = errors.New("answered")

// Parse reads the command line. For -help and -version it prints to answer and returns
// ErrAnswered. Any other error is one line that says what is wrong and what is valid.
// Together with such an error it returns the options parsed so far, which determine how to
// log the error.
func Parse(args []string, answer io.Writer) (*Options, error) {
	flags := flag.NewFlagSet(names.Controller, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var opts Options
	opts.addFlags(flags)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(answer, "%s reconciles the Foos of a cluster: it creates a Deployment for each.\n\nUsage: %s [flags]\n\n", names.Controller, names.Controller)
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
		"Maximum number of Foos whose Pods are restarted at the same time because -image changed or to undo someone's change; half of that in one namespace. 0 means no limit. A change of a Foo's spec does not wait.")
	flags.DurationVar(&o.FightPeriod, "fight-period", time.Minute,
		"How long a repair must last. If another client undoes three in a row earlier, that is a fight: the Foo fails and names the client, and further repairs wait. Whoever is slower is repaired at once each time, and named in Events.")
	flags.BoolVar(&o.OmitPodUser, "omit-pod-user", false,
		"Set no runAsUser in new Deployments, so that the platform chooses the Pods' user, as OpenShift does. Otherwise the user is 101. Existing Deployments keep theirs.")
	flags.StringVar(&o.Image, "image", DefaultImage,
		"Image of the container nginx in the Deployments of all Foos, for example from a mirror. Changing it rolls out all of them. The admission policy must allow it.")
	flags.IntVar(&o.Workers, "workers", 2,
		"Number of Foos that are synced concurrently, not counting those whose call to the API server hangs.")
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

// problems are the problems found in a command line.
type problems []string

// refuse adds a problem if a value is wrong. The message names the flag, its value, and the
// values that it accepts.
func (p *problems) refuse(isWrong bool, format string, args ...any) {
	if isWrong {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

// refuseName adds the problems of a name, if it is set.
func (p *problems) refuseName(flag, name string, validate func(string) []string) {
	if name != "" {
		for _, problem := range validate(name) {
			p.refuse(true, "-%s=%q: %s", flag, name, problem)
		}
	}
}

// validate returns an error that names each flag with an invalid value, and the values that
// it accepts.
func (o *Options) validate(flags *flag.FlagSet) error {
	var p problems
	p.refuse(flags.NArg() > 0, "unexpected argument %q: this command takes flags only", flags.Arg(0))
	p.refuse(o.Image == "", "-image=%q: must be the name of an image", o.Image)
	p.refuse(o.MaxRollouts < 0, "-max-rollouts=%d: must be 0 (no limit) or more", o.MaxRollouts)
	p.refuse(o.FightPeriod < time.Second, "-fight-period=%v: must be 1s or more", o.FightPeriod)
	p.refuse(o.Workers < 1, "-workers=%d: must be 1 or more", o.Workers)
	p.refuse(o.Resync != 0 && o.Resync < time.Second, "-resync=%v: must be 0 (off) or 1s or more", o.Resync)
	p.refuse(o.RequestTimeout < time.Second, "-request-timeout=%v: must be 1s or more", o.RequestTimeout)
	p.refuseName("namespace", o.Namespace, validation.IsDNS1123Label)
	o.Cluster.check(&p)
	o.Election.check(&p)
	o.Serving.check(&p)
	o.Logging.check(&p)
	if len(p) > 0 {
		return errors.New(strings.Join(p, "; "))
	}
	return nil
}

// memoryLimitVariable is the environment variable with the container's memory limit, in
// bytes.
const memoryLimitVariable = "MEMORY_LIMIT"

// LimitMemory sets Go's memory limit to 90% of the container's memory limit, $MEMORY_LIMIT. The
// rest is for memory that Go does not count, such as the program itself, and for a heap that
// slightly exceeds its limit. GOMEMLIMIT in the environment takes precedence.
//
// GOMEMLIMIT alone is not enough, because a manifest can refer to the container's limit
// but not to 90% of it.
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

// currentVersion describes the version of the running program.
func currentVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describeVersion(info)
}

// describeVersion lists, one fact per line, what the go command recorded in a program about
// its origin.
func describeVersion(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	version := info.Main.Version // a tag, or a pseudo-version derived from the commit
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

// Logging holds the flags of the log.
//
// JSON is written by the library of Kubernetes' components, so that tools that read the
// components' logs can read this one. The library adds 0.85 MiB to the program, 3%, including
// cobra, which its feature gates import.
type Logging struct {
	config *logsapi.LoggingConfiguration
}

// addFlags adds the library's flags that matter for a log on standard error.
func (o *Logging) addFlags(flags *flag.FlagSet) {
	o.config = logsapi.NewLoggingConfiguration()
	flags.StringVar(&o.config.Format, "logging-format", logsapi.DefaultLogFormat,
		"Format of the log on standard error: text, or json with one object per line.")
	flags.Var(logsapi.VerbosityLevelPflag(&o.config.Verbosity), "v",
		"Log verbosity: 0 for start and stop, 2 to add each write, 4 to add details. From 8 on, the log contains request bodies, including the tokens of clients that scrape the metrics.")
	flags.Var(logsapi.VModuleConfigurationPflag(&o.config.VModule), "vmodule",
		"Log verbosity by source file, as PATTERN=N,... Only with -logging-format=text.")
}

// check rejects invalid values. JSON has one level for all files.
func (o *Logging) check(p *problems) {
	isText, isJSON := o.config.Format == logsapi.DefaultLogFormat, o.config.Format == logsapi.JSONLogFormat
	p.refuse(!isText && !isJSON, "-logging-format=%q: must be %s or %s", o.config.Format, logsapi.DefaultLogFormat, logsapi.JSONLogFormat)
	p.refuse(isJSON && len(o.config.VModule) > 0, "-vmodule=%s: has no effect with -logging-format=%s",
		logsapi.VModuleConfigurationPflag(&o.config.VModule), o.config.Format)
}

// Apply sets the format and verbosity of everything that logs with klog, slog or the package
// log. Call it once, before the first line is logged, even if a flag is invalid, so that this
// error has the chosen format. An unknown format is an error, and the log remains text.
func (o *Logging) Apply() error {
	config := o.config.DeepCopy()
	if config.Format != logsapi.DefaultLogFormat {
		config.VModule = nil // check rejects it, and so would the library
	}
	return logsapi.ValidateAndApply(config, nil)
}

// Report logs the error that ends the process, in the chosen format.
func (o *Logging) Report(err error, exitCode int) {
	if o.config.Format == logsapi.JSONLogFormat {
		klog.Background().WithCallDepth(1).Error(err, "Exiting", "exitCode", exitCode)
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", names.Controller, err)
}
