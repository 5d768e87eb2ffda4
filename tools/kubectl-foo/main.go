// SPDX-License-Identifier: Apache-2.0

// Command kubectl-foo is a kubectl plugin, "kubectl foo". It previews what the controller
// would write, and explains a Foo's current state. It uses pkg/reconcile/plan, like the
// controller of the same build. Only adopt writes to the cluster.
//
// internal/cluster reads clusters, internal/explain finds out why, internal/report prints,
// and internal/ui serves the page.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/kinds"
	"example.com/sample-controller/tools/internal/printable"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
)

// Exit codes, like kubectl diff's: 0 means that there is nothing to do.
const (
	exitChanges = 1
	exitFailure = 2
)

// errChanges means that a sync would write something.
var errChanges = errors.New("there are changes")

func main() {
	klog.SetLogger(logr.Discard()) // libraries log errors that the commands print
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := newCommand(streams).ExecuteContext(ctx)
	stop()
	switch {
	case errors.Is(err, errChanges):
		os.Exit(exitChanges)
	case err != nil:
		printError(os.Stderr, err)
		os.Exit(exitFailure)
	}
}

// printError prints an error, which may quote text that others wrote. Each line begins with
// "error: ", so that none passes for other output.
func printError(out io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(out, "error: "+printable.Quote(line))
	}
}

// newCommand returns the command with its subcommands.
func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:           "kubectl-foo",
		Short:         "Preview and explain what the Foo controller does",
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl foo"},
	}
	config := genericclioptions.NewConfigFlags(true)
	command.AddCommand(newPlanCommand(config, streams), newWhyCommand(config, streams), newUICommand(config, streams),
		newTimelineCommand(config, streams), newAdoptCommand(config, streams), newSyncCommand(config, streams))
	return command
}

// kindsWith returns the kinds of the program, for Pods that run the image.
func kindsWith(image string) cluster.Kinds { return kinds.Declared(kinds.Options{Image: image}) }
