// SPDX-License-Identifier: Apache-2.0

// Package options defines the command line: the flags, their defaults and their
// validation. Each group of flags has a file, which also makes what depends on these
// flags alone: the client configuration, the log, the servers, the Lease of the election.
// This file has Parse and the remaining flags.
package options

import (
	"errors"
	"flag"
	"fmt"
	"io"
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
