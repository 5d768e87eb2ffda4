// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/options"
	"example.com/sample-controller/tools/internal/timeline"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/kubectl-foo/internal/ui"
	"example.com/sample-controller/tools/preview"
)

const whyHelp = `Print why a Foo is as it is: its condition, the controller's Lease, the objects that it has and what each of them waits
for, what the next sync would write, who wrote the fields that it owns, and the newest Events. Lines with -> say what you
can do.

The command only reads. What it may not read it leaves out, and says so.`

// maxEvents is how many Events fit on a screen.
const maxEvents = 10

// controllerFlags say what the controller's own flags say.
type controllerFlags struct{ image, leaseNamespace, leaseName string }

func (f *controllerFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.image, "image", options.DefaultImage, "Image of the Pods, as the controller's flag -image.")
	flags.StringVar(&f.leaseNamespace, "lease-namespace", names.Controller, "Namespace of the controller's Lease.")
	flags.StringVar(&f.leaseName, "lease-name", names.Controller, "Name of the controller's Lease.")
}

func newWhyCommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var controller controllerFlags
	output := report.FormatText
	command := &cobra.Command{
		Use:     "why NAME",
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

// why reads what explains a Foo.
func why(ctx context.Context, c *cluster.Cluster, name string, controller controllerFlags) (*explain.Explanation, error) {
	foo, err := c.GetFoo(ctx, name)
	if err != nil {
		return nil, err
	}
	s := &explain.Subject{
		Foo: foo, Table: preview.Table(controller.image), Now: time.Now(), LeaseName: controller.leaseNamespace + "/" + controller.leaseName,
	}
	if s.World, err = c.World(ctx, s.Table, true); err != nil {
		return nil, err
	}
	if s.Below, err = c.Below(ctx); err != nil {
		return nil, err
	}
	s.Lease, s.LeaseErr = c.Lease(ctx, controller.leaseNamespace, controller.leaseName)
	return explain.Of(s)
}

const timelineHelp = `Draw what an API server's audit log has about a Foo: a lane for each actor, a mark for each write to the Foo and to what
it owns, and arrows from cause to effect.

The command reads files only. It needs no request and no response bodies, but the log must have the level Metadata or
more for Foos and for what they own.`

// The formats of a timeline, beside text.
const (
	formatSVG  = "svg"
	formatHTML = "html"
)

// timelineOptions are the flags of timeline.
type timelineOptions struct {
	config *genericclioptions.ConfigFlags
	genericiooptions.IOStreams

	audit  []string
	output string
	you    string
}

func newTimelineCommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &timelineOptions{config: config, IOStreams: streams}
	command := &cobra.Command{
		Use:   "timeline NAME --audit FILE...",
		Short: "Draw what an audit log has about a Foo",
		Long:  timelineHelp,
		Example: `  kubectl foo timeline example-foo --audit audit.log
  kubectl foo timeline example-foo --audit audit-1.log.gz,audit.log -o html >example-foo.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
	}
	flags := command.Flags()
	flags.StringSliceVar(&o.audit, "audit", nil, "Audit logs as JSON lines, compressed by gzip or not, or - for standard input.")
	flags.StringVarP(o.config.Namespace, "namespace", "n", "", "Namespace of the Foo; default: all that have a Foo of this name.")
	flags.StringVar(&o.you, "you", "", "User to call \"you\".")
	flags.StringVarP(&o.output, "output", "o", report.FormatText, "Format: text, svg or html.")
	return command
}

func (o *timelineOptions) run(name string) error {
	if err := report.CheckFormat(o.output, report.FormatText, formatSVG, formatHTML); err != nil {
		return err
	}
	if len(o.audit) == 0 {
		return errors.New("say which log: --audit FILE, or --audit - for standard input")
	}
	selection, err := timeline.ParseSelection("foos/" + name)
	if err != nil {
		return err
	}
	log := &timeline.Log{Namespace: *o.config.Namespace, Object: &selection, You: o.you}
	for _, path := range o.audit {
		if err := timeline.ReadLog(path, o.In, log.Add, o.ErrOut); err != nil {
			return err
		}
	}
	picture, err := log.Picture()
	if err != nil {
		return fmt.Errorf("the log has nothing about the Foo %q: %w", name, err)
	}
	return map[string]func(io.Writer) error{
		report.FormatText: picture.WriteText, formatSVG: picture.WriteSVG, formatHTML: picture.WriteHTML,
	}[o.output](o.Out)
}

const uiHelp = `Serve a page on this machine that shows Foos live: why each is as it is, what the controller would write, its condition
over time and, from an audit log, who wrote what when.

The command prints the page's address, and runs until Ctrl-C. It listens on 127.0.0.1 only, and answers only who knows the
token in the address. It reads with the account of the kubeconfig, by watches, and writes nothing. What the account may
not read the page leaves out, and says so.`

// uiOptions are the flags of ui.
type uiOptions struct {
	config *genericclioptions.ConfigFlags
	genericiooptions.IOStreams

	controller    controllerFlags
	allNamespaces bool
	port          uint16
	audit, you    string
}

func newUICommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &uiOptions{config: config, IOStreams: streams}
	command := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page that shows Foos live",
		Long:  uiHelp,
		Example: `  kubectl foo ui                     # the Foos of the namespace
  kubectl foo ui -A --audit audit.log`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	flags := command.Flags()
	config.AddFlags(flags)
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show the Foos of all namespaces.")
	flags.Uint16Var(&o.port, "port", 0, "Port on 127.0.0.1; 0 is any free one.")
	flags.StringVar(&o.audit, "audit", "", "Audit log of the API server, as JSON lines, to draw timelines from as it grows.")
	flags.StringVar(&o.you, "you", "", "User of the audit log to call \"you\".")
	o.controller.add(command)
	return command
}

func (o *uiOptions) run(ctx context.Context) error {
	c, err := cluster.New(o.config, o.allNamespaces)
	if err != nil {
		return err
	}
	live, err := ui.NewLive(ui.Options{
		Cluster: c, Table: preview.Table(o.controller.image), Audit: o.audit, You: o.you, Now: time.Now,
		LeaseNamespace: o.controller.leaseNamespace, LeaseName: o.controller.leaseName,
	})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return err
	}
	defer listener.Close()
	server, err := ui.New(live, listener.Addr())
	if err != nil {
		return err
	}
	if err := live.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // Ctrl-C
		}
		return err
	}
	fmt.Fprintf(o.Out, "%s\n", server.URL())
	return server.Serve(ctx, listener)
}
