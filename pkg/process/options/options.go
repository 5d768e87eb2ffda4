// SPDX-License-Identifier: Apache-2.0

// Package options defines a controller's command line: the flags that every controller has, their
// defaults and their validation. A Program adds its own flags, and the words for its objects.
// It also sets up what depends only on flags: the client configuration, the log, the
// servers, the Lease of the election, the memory limit.
//
// Parse only reads. After it, call Logging.Apply, even after an error, so that Logging.Report writes
// that in the chosen format; LimitMemory; Cluster.RESTConfig, for package kubeclient; Serving.Start;
// and Election.ApplyTo, for election.Run. The package links these, and Kubernetes' log library.
package options

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // for -logging-format=json
	"k8s.io/klog/v2"
)

// Program is what differs between the command lines of two controllers.
type Program struct {
	// Name is the command's name, and the default name of its Lease.
	Name string
	// Purpose follows the name in -help, such as "reconciles the Gadgets of a cluster."
	Purpose string
	// Kind and Plural are the words for what it reconciles, such as "Gadget" and "Gadgets".
	Kind, Plural string
	// AddFlags adds the program's own flags, with their defaults. Check refuses invalid values of
	// them: refuse adds a problem if a value is wrong, and its message names the flag, the value,
	// and the values that are valid. Both may be nil.
	AddFlags func(flags *flag.FlagSet)
	Check    func(refuse func(isWrong bool, format string, args ...any))
}

// Options are the flags that every controller has.
type Options struct {
	// Namespace is the namespace whose objects are reconciled. Empty means all namespaces.
	Namespace string
	// Workers is the number of objects that are synced concurrently.
	Workers int
	// Resync is the period of the resync of all objects; 0 turns it off.
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
func Parse(args []string, answer io.Writer, program Program) (*Options, error) {
	flags := flag.NewFlagSet(program.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var opts Options
	opts.addFlags(flags, program)
	if program.AddFlags != nil {
		program.AddFlags(flags)
	}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(answer, "%s %s\n\nUsage: %s [flags]\n\n", program.Name, program.Purpose, program.Name)
		flags.SetOutput(answer)
		flags.PrintDefaults()
		return nil, ErrAnswered
	case err != nil:
		return &opts, fmt.Errorf("%w (see -help)", err)
	case opts.version:
		info, _ := debug.ReadBuildInfo()
		fmt.Fprint(answer, describeVersion(program.Name, cmp.Or(info, &debug.BuildInfo{})))
		return nil, ErrAnswered
	}
	return &opts, opts.validate(flags, program)
}

// addFlags adds the flags, with their defaults, to a flag set.
func (o *Options) addFlags(flags *flag.FlagSet, program Program) {
	flags.StringVar(&o.Namespace, "namespace", metav1.NamespaceAll,
		"Namespace whose "+program.Plural+" to reconcile. If not set: all namespaces.")
	flags.IntVar(&o.Workers, "workers", 2,
		"Number of "+program.Plural+" that are synced concurrently, not counting those whose call to the API server hangs.")
	flags.DurationVar(&o.Resync, "resync", 30*time.Second,
		"Period of the resync, which syncs every "+program.Kind+" again even if nothing changed. It sends no request for a "+program.Kind+" that is in its desired state. 0 turns it off.")
	flags.DurationVar(&o.RequestTimeout, "request-timeout", 30*time.Second,
		"Timeout of a single request to the API server, which is then retried later.")
	flags.BoolVar(&o.version, "version", false,
		"Print the versions of this program, of Go and of the Kubernetes modules in it, and exit.")
	o.Cluster.addFlags(flags)
	o.Election.addFlags(flags, program.Name)
	o.Serving.addFlags(flags)
	o.Logging.addFlags(flags, program.Name)
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
func (o *Options) validate(flags *flag.FlagSet, program Program) error {
	var p problems
	p.refuse(flags.NArg() > 0, "unexpected argument %q: this command takes flags only", flags.Arg(0))
	if program.Check != nil {
		program.Check(p.refuse)
	}
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

// origin matches the lines of a BuildInfo that say what a program was built from. A line that begins
// with => names the replacement of the module before it.
var origin = regexp.MustCompile(`(?m)^(go\t|dep\tk8s\.io/(api|apimachinery|client-go)\t|build\t(GOARCH|GOOS|vcs\.)).*\n(=>.*\n)?`)

// describeVersion returns a program's version, and what the go command recorded about its origin, as
// "go version -m" prints it.
func describeVersion(program string, info *debug.BuildInfo) string {
	return fmt.Sprintln(program, cmp.Or(info.Main.Version, "(devel)")) + strings.Join(origin.FindAllString(info.String(), -1), "")
}

// Logging holds the flags of the log.
//
// JSON is written by the library of Kubernetes' components, so that tools that read the
// components' logs can read this one. That adds 0.85 MiB to the program, 3%, including cobra,
// which the library's feature gates import.
type Logging struct {
	program string
	config  *logsapi.LoggingConfiguration
}

// addFlags adds the library's flags that matter for a log on standard error.
func (o *Logging) addFlags(flags *flag.FlagSet, program string) {
	o.program, o.config = program, logsapi.NewLoggingConfiguration()
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
	fmt.Fprintf(os.Stderr, "%s: %v\n", o.program, err)
}
