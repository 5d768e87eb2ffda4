// SPDX-License-Identifier: Apache-2.0

// Command kubectl-foo is a kubectl plugin, "kubectl foo", that says what the controller
// would do before it does it, and why a Foo is as it is. It decides with internal/plan, as
// the controller of the same build does, and writes nothing to the cluster.
//
// Each command has a file of its own. internal/cluster reads clusters, internal/explain
// finds out why, internal/report prints, and internal/ui serves the page.
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

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/tools/internal/printable"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
)

// Exit codes, as those of kubectl diff: 0 means that there is nothing to do.
const (
	exitChanges = 1
	exitFailure = 2
)

// errChanges means that a sync would write something.
var errChanges = errors.New("there are changes")

func main() {
	klog.SetLogger(logr.Discard()) // libraries log what the commands say
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

// printError prints an error, which may quote what others wrote. Each of its lines begins
// with our word, so that none passes for something else.
func printError(out io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(out, "error: "+printable.Quote(line))
	}
}

// newCommand returns the command with its subcommands.
func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:           "kubectl-foo",
		Short:         "See what the controller of Foos would do, before it does it",
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl foo"},
	}
	config := genericclioptions.NewConfigFlags(true)
	command.AddCommand(newPlanCommand(config, streams), newWhyCommand(config, streams), newTimelineCommand(config, streams), newUICommand(config, streams))
	return command
}

// kindsWith returns the kinds of the program. image is that of the Pods.
func kindsWith(image string) cluster.Kinds { return plan.Kinds(image) }

// completeNames completes the names of owners for shells.
func completeNames(config *genericclioptions.ConfigFlags) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := cluster.New(config, false)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		kinds := kindsWith("")
		for _, kind := range kinds {
			owners, err := c.ListOwners(command.Context(), kind, "")
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			for _, owner := range owners {
				names = append(names, kinds.Argument(kind, owner.GetName()))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
