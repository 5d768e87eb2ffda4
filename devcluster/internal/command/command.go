// SPDX-License-Identifier: Apache-2.0

// Package command is devcluster's command line: up, run, version and help.
package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"example.com/sample-controller/devcluster/internal/cluster"
)

// Exit codes, besides that of the command of run.
const (
	exitOK       = 0
	exitFailure  = 1
	exitUsage    = 2
	exitNotFound = 127 // the code that shells use for a command that does not exist
)

const usage = `devcluster runs a real Kubernetes control plane on this machine, without installing anything.

  devcluster up [flags]                     start a cluster, and stop it on Ctrl-C
  devcluster run [flags] -- COMMAND ARGS    start a cluster, run COMMAND with KUBECONFIG set to it, stop the
                                            cluster, and exit with COMMAND's exit code
  devcluster kubectl ARGS                   run kubectl
  devcluster version                        print the versions of the components, and those of Kubernetes to emulate
  devcluster help                           print this text

  devcluster etcd | kube-apiserver | kube-controller-manager | kube-scheduler | kwok ARGS
                                            run one component, like its own binary

Flags of up and run:
`

// Main runs devcluster with the given arguments, and returns its exit code.
func Main(args []string) int {
	if len(args) == 0 {
		printUsage(os.Stderr)
		return exitUsage
	}
	switch name, args := args[0], args[1:]; name {
	case "up":
		return withOptions(name, args, up)
	case "run":
		return withOptions(name, args, run)
	case "version":
		return version(os.Stdout)
	case "help", "-h", "-help", "--help":
		printUsage(os.Stdout)
		return exitOK
	default:
		return refuse(fmt.Errorf("unknown command %q", name))
	}
}

// withOptions calls f with the options from the flags, and the arguments after the flags.
func withOptions(name string, args []string, f func(cluster.Options, []string) int) int {
	options, rest, err := parse(name, args)
	if errors.Is(err, flag.ErrHelp) {
		printUsage(os.Stdout)
		return exitOK
	}
	if err != nil {
		return refuse(err)
	}
	return f(options, rest)
}

// parse parses the command line of up or run.
func parse(name string, args []string) (cluster.Options, []string, error) {
	var options cluster.Options
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error, in one line
	options.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return options, nil, err
	}
	rest := flags.Args()
	switch {
	case name == "up" && len(rest) > 0:
		return options, nil, fmt.Errorf("up takes no arguments, only flags: %s", strings.Join(rest, " "))
	case name == "run" && len(rest) == 0:
		return options, nil, errors.New("run needs a command: devcluster run [flags] -- COMMAND ARGS")
	}
	return options, rest, options.Validate()
}

func refuse(err error) int {
	fmt.Fprintf(os.Stderr, "devcluster: %v (see devcluster help)\n", err)
	return exitUsage
}

func printUsage(w io.Writer) {
	fmt.Fprint(w, usage)
	var options cluster.Options
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(w)
	options.AddFlags(flags)
	flags.PrintDefaults()
}
