// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/options"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
)

const whyHelp = `Print why a Foo is as it is: its condition, the controller's Lease, the objects that it has and what each of them waits
for, what the next sync would write, who wrote the fields that it owns, and the newest Events. Lines with -> say what you
can do.

The command only reads. What it may not read it leaves out, and says so.`

// maxEvents is how many Events fit on a screen.
const maxEvents = 10

// controllerFlags say what the controller's own flags say.
type controllerFlags struct {
	image string
	lease cache.ObjectName
}

func (f *controllerFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.image, "image", options.DefaultImage, "Image of the Pods, as the controller's flag -image.")
	flags.StringVar(&f.lease.Namespace, "lease-namespace", names.Controller, "Namespace of the controller's Lease.")
	flags.StringVar(&f.lease.Name, "lease-name", names.Controller, "Name of the controller's Lease.")
}

func newWhyCommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var controller controllerFlags
	output := report.FormatText
	command := &cobra.Command{
		Use:     "why [KIND/]NAME",
		Short:   "Print why a Foo is as it is",
		Long:    whyHelp,
		Example: `  kubectl foo why example-foo`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := report.CheckFormat(output, report.FormatText, report.FormatJSON, report.FormatYAML); err != nil {
				return err
			}
			c, err := cluster.New(config, false)
			if err != nil {
				return err
			}
			explanation, err := why(command.Context(), c, args[0], controller)
			switch {
			case err != nil:
				return err
			case output == report.FormatText:
				return explanation.Print(report.NewPrinter(streams.Out), maxEvents)
			}
			return report.PrintStructured(streams.Out, output, explanation)
		},
		ValidArgsFunction: completeNames(config),
	}
	config.AddFlags(command.Flags())
	command.Flags().StringVarP(&output, "output", "o", output, "Format: text, json or yaml.")
	controller.add(command)
	return command
}

// why reads what explains an owner.
func why(ctx context.Context, c *cluster.Cluster, name string, controller controllerFlags) (*explain.Explanation, error) {
	kind, name, err := kindsWith(controller.image).Parse(name)
	if err != nil {
		return nil, err
	}
	owners, err := c.ListOwners(ctx, kind, name)
	if err != nil {
		return nil, err
	}
	if len(owners) == 0 {
		return nil, c.NoOwner(kind, name)
	}
	world, missing, err := c.Find(ctx, cluster.Kinds{kind}.Explaining())
	if err != nil {
		return nil, err
	}
	return explain.Of(&explain.Subject{
		Owner: owners[0], Kind: kind, World: world, Missing: missing, Lease: c.Lease(ctx, controller.lease), Now: time.Now(),
	})
}
