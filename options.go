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

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// options are the command's flags.
type options struct {
	kubeconfig     string
	master         string
	namespace      string
	image          string
	workers        int
	resync         time.Duration
	qps            float64
	burst          int
	requestTimeout time.Duration
	version        bool
	election       electionOptions
	serving        servingOptions
	logging        loggingOptions
}

// errAnswered says that the command line asked only for what has been printed:
// the flags or the version.
var errAnswered = errors.New("answered")

// parseOptions reads the command line. It returns errAnswered, having printed
// to answer what -help or -version asked for; any other error is one line that
// says what is wrong and what would be right. The options come with an error,
// too: as far as they were read, they say how to log it.
func parseOptions(args []string, answer io.Writer) (*options, error) {
	flags := flag.NewFlagSet(controllerName, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var opts options
	opts.addFlags(flags)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(answer, "%s runs the controller for Foos against a cluster.\n\nUsage: %s [flags]\n\n", controllerName, controllerName)
		visible := visibleFlags(flags)
		visible.SetOutput(answer)
		visible.PrintDefaults()
		return nil, errAnswered
	case err != nil:
		return &opts, fmt.Errorf("%w (see -help)", err)
	case opts.version:
		fmt.Fprint(answer, currentVersion())
		return nil, errAnswered
	}
	return &opts, opts.validate(flags)
}

// addFlags defines the flags, with their defaults, in a flag set.
func (o *options) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Path of a kubeconfig. Left out: $KUBECONFIG, then the service account of the Pod that this runs in, then ~/.kube/config.")
	flags.StringVar(&o.master, "master", "",
		"Address of the API server, in place of the kubeconfig's.")
	flags.StringVar(&o.namespace, "namespace", metav1.NamespaceAll,
		"Namespace whose Foos to look after. Left out: all.")
	flags.StringVar(&o.image, "image", defaultImage,
		"Image of the container nginx in the Deployments of all Foos, such as a mirror's. To change it rolls them all out. The admission policy has to allow it.")
	flags.IntVar(&o.workers, "workers", 2,
		"Number of Foos that are synced at the same time.")
	flags.DurationVar(&o.resync, "resync", 30*time.Second,
		"Period after which each Foo is looked at again without a change. A Foo that is as it should be costs no request. 0 turns it off.")
	flags.Float64Var(&o.qps, "kube-api-qps", -1,
		"Requests to the API server per second, in the long run. -1 means no limit of our own: the server's priority and fairness is the limiter.")
	flags.IntVar(&o.burst, "kube-api-burst", 100,
		"Requests to the API server that may exceed -kube-api-qps at once. Without meaning where that is -1.")
	flags.DurationVar(&o.requestTimeout, "request-timeout", 30*time.Second,
		"Time after which a single request to the API server is given up and tried again later.")
	flags.BoolVar(&o.version, "version", false,
		"Print the version of this program, of Go and of the Kubernetes modules in it, and end.")
	o.election.addFlags(flags)
	o.serving.addFlags(flags)
	o.logging.addFlags(flags)
}

// validate refuses what can't be meant, naming the flag and what it takes.
func (o *options) validate(flags *flag.FlagSet) error {
	var problems []string
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	if flags.NArg() > 0 {
		refuse("unexpected argument %q: this command takes flags only", flags.Arg(0))
	}
	if o.image == "" {
		refuse("-image=%q: must be the name of an image", o.image)
	}
	if o.workers < 1 {
		refuse("-workers=%d: must be 1 or more", o.workers)
	}
	if o.resync != 0 && o.resync < time.Second {
		refuse("-resync=%v: must be 0 (off), or 1s or more", o.resync)
	}
	if o.qps != -1 && o.qps <= 0 {
		refuse("-kube-api-qps=%v: must be -1 (no limit) or more than 0", o.qps)
	}
	if o.burst < 1 {
		refuse("-kube-api-burst=%d: must be 1 or more", o.burst)
	}
	if o.requestTimeout < time.Second {
		refuse("-request-timeout=%v: must be 1s or more", o.requestTimeout)
	}
	if o.namespace != metav1.NamespaceAll {
		for _, problem := range validation.IsDNS1123Label(o.namespace) {
			refuse("-namespace=%q: %s", o.namespace, problem)
		}
	}
	if _, err := url.Parse(o.master); err != nil {
		refuse("-master: %v", err)
	}
	problems = append(problems, o.election.problems()...)
	problems = append(problems, o.serving.problems()...)
	problems = append(problems, o.logging.problems(flags)...)
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}
