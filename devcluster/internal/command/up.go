// SPDX-License-Identifier: Apache-2.0

// The commands up and run.

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"example.com/sample-controller/devcluster/internal/cluster"
	"example.com/sample-controller/devcluster/internal/supervise"
)

const (
	// commandGrace is how long the command of run may take to exit after a signal.
	commandGrace = 10 * time.Second
	// logLines is how many lines of a component's log are shown when it fails.
	logLines = 20
)

// interrupted is the cause of a context that a signal has cancelled.
type interrupted struct{ signal syscall.Signal }

func (i interrupted) Error() string { return "stopped by " + i.signal.String() }

// onSignals returns two contexts: the first signal cancels stop, the second cancels kill.
func onSignals() (stop, kill context.Context) {
	stop, cancelStop := context.WithCancelCause(context.Background())
	kill, cancelKill := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	// Including SIGPIPE, so that the data is removed even if output goes to a pipe whose
	// reader has exited.
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
	var exited *supervise.ExitError
	var notReady *cluster.NotReadyError
	switch {
	case errors.As(err, &exited): // first, because it may be the reason why another component did not become ready
		fmt.Fprintf(os.Stderr, "devcluster: %v\n", exited)
		showLog(exited.Log)
	case errors.As(err, &notReady):
		fmt.Fprintf(os.Stderr, "devcluster: %v\n", err)
		showLog(notReady.Log)
	default:
		fmt.Fprintf(os.Stderr, "devcluster: %v\n", err)
	}
	return exitFailure
}

func showLog(path string) {
	lines, err := supervise.Tail(path, logLines)
	if err != nil {
		fmt.Fprintf(os.Stderr, "its log can't be read: %v\n", err)
		return
	}
	fmt.Fprintf(os.Stderr, "the end of its log, %s:\n", path)
	for _, line := range lines {
		fmt.Fprintln(os.Stderr, "  "+line)
	}
}
