// SPDX-License-Identifier: Apache-2.0

// Package command is devcluster's command line: up, run, version and help.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"example.com/sample-controller/devcluster/internal/cluster"
	"example.com/sample-controller/devcluster/internal/supervise"
)

// Exit codes other than the exit code of run's command.
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
  devcluster version                        print the components' versions, and the Kubernetes versions that they can emulate
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

const (
	// commandGrace is how long run's command may take to exit after a signal.
	commandGrace = 10 * time.Second
	// logLines is how many lines of a component's log are shown when it fails.
	logLines = 20
)

// interrupted is the cause of a context that a signal has canceled.
type interrupted struct{ signal syscall.Signal }

func (i interrupted) Error() string { return "stopped by " + i.signal.String() }

// onSignals returns two contexts: the first signal cancels stop, the second cancels kill.
func onSignals() (stop, kill context.Context) {
	stop, cancelStop := context.WithCancelCause(context.Background())
	kill, cancelKill := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	// SIGPIPE is included so that the data is removed even if the reader of the output has exited.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		first := <-signals
		cancelStop(interrupted{first.(syscall.Signal)})
		<-signals
		cancelKill()
	}()
	return stop, kill
}

func up(options cluster.Options, _ []string) int {
	stop, kill := onSignals()
	c, ctx, err := cluster.Start(stop, kill, options, os.Stderr)
	if err != nil {
		return fail(err)
	}
	announce(c, options)
	<-ctx.Done()
	return finish(kill, c, context.Cause(ctx), exitOK)
}

func run(options cluster.Options, command []string) int {
	if _, err := exec.LookPath(command[0]); err != nil {
		fmt.Fprintf(os.Stderr, "devcluster: %v\n", err)
		return exitNotFound
	}
	stop, kill := onSignals()
	c, ctx, err := cluster.Start(stop, kill, options, os.Stderr)
	if err != nil {
		return fail(err)
	}
	code, err := c.Group().RunForeground(ctx, kill, commandGrace, command, []string{"KUBECONFIG=" + c.Kubeconfig()})
	if err == nil {
		err = context.Cause(ctx)
	}
	return finish(kill, c, err, code)
}

// finish stops a cluster, for the given reason if it is not nil, and returns the exit
// code: the given one, unless something failed.
func finish(kill context.Context, c *cluster.Cluster, reason error, code int) int {
	if _, ok := errors.AsType[interrupted](reason); ok {
		reason = nil
		fmt.Fprintln(os.Stderr, "Stopping")
	}
	if err := errors.Join(reason, c.Stop(kill, reason)); err != nil {
		return fail(err)
	}
	return code
}

func announce(c *cluster.Cluster, options cluster.Options) {
	self, err := os.Executable()
	if err != nil {
		self = "devcluster"
	}
	effect := "stops it and removes " + c.DataDir()
	if options.Keep {
		effect = "stops it and keeps " + c.DataDir()
	}
	fmt.Printf("\nKubernetes is up at %s. In another terminal:\n\n  export KUBECONFIG=%s\n  %s kubectl get nodes\n\nCtrl-C %s\n",
		c.Server(), quote(c.Kubeconfig()), quote(self), effect)
}

// fail prints an error, with the end of the log of the component that caused it, and
// returns the exit code.
func fail(err error) int {
	if stopped, ok := errors.AsType[interrupted](err); ok {
		return 128 + int(stopped.signal)
	}
	log := ""
	// Use the innermost, because the exit of one component may be why another did not become ready.
	for failure := (*supervise.Failure)(nil); errors.As(err, &failure); err = failure.Err {
		log = failure.Log
	}
	fmt.Fprintf(os.Stderr, "devcluster: %v\n", err)
	if log != "" {
		showLog(log)
	}
	return exitFailure
}

func showLog(path string) {
	content, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot read its log: %v\n", err)
		return
	}
	fmt.Fprintf(os.Stderr, "The end of its log, %s:\n", path)
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	for _, line := range lines[max(0, len(lines)-logLines):] {
		fmt.Fprintln(os.Stderr, "  "+line)
	}
}

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

// plain are the characters that have no special meaning in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,"

// quote quotes s for a shell if that is needed.
func quote(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
