// SPDX-License-Identifier: Apache-2.0

// The commands why, ui and timeline.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/kubectl-foo/internal/ui"
)

const whyHelp = `Explain a Foo's current state: its condition, the controller's Lease, the objects that it owns and what each is waiting
for, what the next sync would write, and the newest Events. Lines with -> suggest what you can do.

The command only reads. It leaves out what your account may not read, and names the missing permission.`

// maxEvents is the number of Events that fit on a screen.
const maxEvents = 10

// controllerFlags repeat the controller's own settings.
type controllerFlags struct {
	image string
	lease cache.ObjectName
}

func (f *controllerFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.image, "image", names.DefaultImage, "Image of the Pods; must be the value of the controller's flag -image.")
	flags.StringVar(&f.lease.Namespace, "lease-namespace", names.Controller, "Namespace of the controller's Lease.")
	flags.StringVar(&f.lease.Name, "lease-name", names.Controller, "Name of the controller's Lease.")
}

func newWhyCommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var controller controllerFlags
	output := report.FormatText
	command := &cobra.Command{
		Use:     "why [KIND/]NAME",
		Short:   "Explain a Foo's current state",
		Long:    whyHelp,
		Example: `  kubectl foo why example-foo`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := report.CheckFormat(output, report.FormatText, report.FormatJSON); err != nil {
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
			return report.PrintJSON(streams.Out, explanation)
		},
	}
	config.AddFlags(command.Flags())
	command.Flags().StringVarP(&output, "output", "o", output, "Output format: text or json.")
	controller.add(command)
	return command
}

// why reads an owner and everything that explains it.
func why(ctx context.Context, c *cluster.Cluster, name string, controller controllerFlags) (*explain.Explanation, error) {
	kind, name, err := kindsWith(controller.image).Parse(name)
	if err != nil {
		return nil, err
	}
	s := &explain.Subject{Lease: c.Lease(ctx, controller.lease), Now: time.Now()}
	if err := s.Read(ctx, c, kind, name); err != nil {
		return nil, err
	}
	return explain.Of(s)
}

const uiHelp = `Serve a local web page that shows Foos live: why each is in its current state, what the controller would write next and,
from an audit log, who wrote what and when.

The command prints the page's address and runs until Ctrl-C. It listens only on 127.0.0.1, and answers only requests with
the token in that address. While the page is visible, it reads every two seconds with the kubeconfig's
account, and it writes nothing. The page leaves out what the account may not read, and names the missing permission.`

func newUICommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var controller controllerFlags
	var allNamespaces bool
	var port uint16
	var opts ui.Options
	command := &cobra.Command{
		Use:   "ui",
		Short: "Serve a web page that shows Foos live",
		Long:  uiHelp,
		Example: `  kubectl foo ui                     # the Foos in the current namespace
  kubectl foo ui -A --audit audit.log`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if opts.Cluster, err = cluster.New(config, allNamespaces); err != nil {
				return err
			}
			opts.Kinds, opts.Lease = kindsWith(controller.image), controller.lease
			return ui.Serve(command.Context(), opts, port, streams.Out)
		},
	}
	flags := command.Flags()
	config.AddFlags(flags)
	flags.BoolVarP(&allNamespaces, "all-namespaces", "A", false, "Show the Foos in all namespaces.")
	flags.Uint16Var(&port, "port", 0, "Port on 127.0.0.1; 0 picks a free port.")
	flags.StringVar(&opts.Audit, "audit", "", "API server's audit log, as JSON lines, to draw timelines from as the log grows.")
	flags.StringVar(&opts.You, "you", "", "User in the audit log to call \"you\".")
	controller.add(command)
	return command
}

const timelineHelp = `Draw a Foo's history from an API server's audit log: a lane for each actor, a mark for each write to the Foo and to the
objects that it owns, and arrows from cause to effect.

The command reads only files. The log must record Foos and the objects that they own at level Metadata or higher. If it
contains bodies, ownership comes from the owner references. Otherwise, an object belongs to an owner if its name begins
with the owner's name.`

func newTimelineCommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	log, output := &timeline.Log{}, report.FormatText
	var paths []string
	command := &cobra.Command{
		Use:   "timeline NAME --audit FILE...",
		Short: "Draw a Foo's history from an audit log",
		Long:  timelineHelp,
		Example: `  kubectl foo timeline example-foo --audit audit.log
  zcat audit-1.log.gz | kubectl foo timeline example-foo --audit -,audit.log -o svg >example-foo.svg`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			kind, name, err := kindsWith("").Parse(args[0])
			if err != nil {
				return err
			}
			return draw(log, kind, cache.NewObjectName(*config.Namespace, name), paths, output, streams)
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&paths, "audit", nil, "Audit logs, as JSON lines; - means standard input.")
	flags.StringVarP(config.Namespace, "namespace", "n", "", "Namespace of the Foo; by default, all namespaces with a Foo of this name.")
	flags.StringVar(&log.You, "you", "", "User in the audit log to call \"you\".")
	flags.StringVarP(&output, "output", "o", output, "Output format: text or svg.")
	return command
}

// draw draws the history of an object of a kind from audit logs.
func draw(log *timeline.Log, kind *plan.Kind, owner cache.ObjectName, paths []string, output string, streams genericiooptions.IOStreams) error {
	if err := report.CheckFormat(output, report.FormatText, "svg"); err != nil {
		return err
	}
	if len(paths) == 0 {
		return errors.New("--audit is missing: name an audit log, or - for standard input")
	}
	for _, path := range paths {
		if err := audit.ReadFile(path, streams.In, log.Add, streams.ErrOut); err != nil {
			return err
		}
	}
	drawn, err := log.Of(kind, owner.Namespace, owner.Name)
	if err != nil {
		return fmt.Errorf("the log contains nothing about the %s %q: %w", kind.Name, owner.Name, err)
	}
	if output == "svg" {
		return drawn.WriteSVG(streams.Out)
	}
	return drawn.WriteText(streams.Out)
}
