// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/ui"
	"example.com/sample-controller/tools/preview"
)

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
