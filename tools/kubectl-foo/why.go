// SPDX-License-Identifier: Apache-2.0

// The commands why, ui and timeline.

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
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/options"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/explain"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
	"example.com/sample-controller/tools/kubectl-foo/internal/ui"
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

const uiHelp = `Serve a page on this machine that shows Foos live: why each is as it is, what the controller would write and, from an
audit log, who wrote what when.

The command prints the page's address, and runs until Ctrl-C. It listens on 127.0.0.1 only, and answers only who knows the
token in the address. It reads with the account of the kubeconfig, by watches, and writes nothing. What the account may
not read the page leaves out, and says so.`

func newUICommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var controller controllerFlags
	var allNamespaces bool
	var port uint16
	var opts ui.Options
	command := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page that shows Foos live",
		Long:  uiHelp,
		Example: `  kubectl foo ui                     # the Foos of the namespace
  kubectl foo ui -A --audit audit.log`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if opts.Cluster, err = cluster.New(config, allNamespaces); err != nil {
				return err
			}
			opts.Kinds, opts.Lease = kindsWith(controller.image), controller.lease
			return serve(command.Context(), opts, port, streams.Out)
		},
	}
	flags := command.Flags()
	config.AddFlags(flags)
	flags.BoolVarP(&allNamespaces, "all-namespaces", "A", false, "Show the Foos of all namespaces.")
	flags.Uint16Var(&port, "port", 0, "Port on 127.0.0.1; 0 is any free one.")
	flags.StringVar(&opts.Audit, "audit", "", "Audit log of the API server, as JSON lines, to draw timelines from as it grows.")
	flags.StringVar(&opts.You, "you", "", "User of the audit log to call \"you\".")
	controller.add(command)
	return command
}

// serve serves the page until ctx is done, and prints its address once it has something to
// show.
func serve(ctx context.Context, opts ui.Options, port uint16, out io.Writer) error {
	live, err := ui.NewLive(opts)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := live.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // Ctrl-C
		}
		return err
	}
	server := ui.New(live, listener.Addr())
	fmt.Fprintf(out, "%s\n", server.URL())
	return server.Serve(ctx, listener)
}

const timelineHelp = `Draw what an API server's audit log has about a Foo: a lane for each actor, a mark for each write to the Foo and to what
it owns, and arrows from cause to effect.

The command reads files only. The log must have the level Metadata or more for Foos and for what they own. In a log
with bodies, owner references say what a Foo owns; in one without, an object is its owner's if the name begins with that
of the owner.`

func newTimelineCommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	log, output := &timeline.Log{}, report.FormatText
	var paths []string
	command := &cobra.Command{
		Use:   "timeline NAME --audit FILE...",
		Short: "Draw what an audit log has about a Foo",
		Long:  timelineHelp,
		Example: `  kubectl foo timeline example-foo --audit audit.log
  kubectl foo timeline example-foo --audit audit-1.log.gz,audit.log -o html >example-foo.html`,
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
	flags.StringSliceVar(&paths, "audit", nil, "Audit logs as JSON lines, compressed by gzip or not, or - for standard input.")
	flags.StringVarP(config.Namespace, "namespace", "n", "", "Namespace of the Foo; default: all that have a Foo of this name.")
	flags.StringVar(&log.You, "you", "", "User to call \"you\".")
	flags.StringVarP(&output, "output", "o", output, "Format: text, svg or html.")
	return command
}

// draw reads audit logs, and draws what they have about an object of a kind.
func draw(log *timeline.Log, kind *plan.OwnerKind, owner cache.ObjectName, paths []string, output string, streams genericiooptions.IOStreams) error {
	if err := report.CheckFormat(output, report.FormatText, "svg", "html"); err != nil {
		return err
	}
	if len(paths) == 0 {
		return errors.New("say which log: --audit FILE, or --audit - for standard input")
	}
	for _, path := range paths {
		if err := audit.ReadFile(path, streams.In, log.Add, streams.ErrOut); err != nil {
			return err
		}
	}
	drawn, err := log.Of(kind, owner.Namespace, owner.Name)
	if err != nil {
		return fmt.Errorf("the log has nothing about the %s %q: %w", kind.Kind, owner.Name, err)
	}
	return map[string]func(io.Writer) error{
		report.FormatText: drawn.WriteText, "svg": drawn.WriteSVG, "html": drawn.WriteHTML,
	}[output](streams.Out)
}
