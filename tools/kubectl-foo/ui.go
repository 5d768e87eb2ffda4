// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/ui"
)

const uiHelp = `Serve a page on this machine that shows Foos live: why each is as it is, what the controller would write and, from an
audit log, who wrote what when.

The command prints the page's address, and runs until Ctrl-C. It listens on 127.0.0.1 only, and answers only who knows the
token in the address. It reads with the account of the kubeconfig, by watches, and writes nothing. What the account may
not read the page leaves out, and says so.`

func newUICommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var controller controllerFlags
	var allNamespaces bool
	var port uint16
	var options ui.Options
	command := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page that shows Foos live",
		Long:  uiHelp,
		Example: `  kubectl foo ui                     # the Foos of the namespace
  kubectl foo ui -A --audit audit.log`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if options.Cluster, err = cluster.New(config, allNamespaces); err != nil {
				return err
			}
			options.Kinds, options.Lease = kindsWith(controller.image), controller.lease
			return serve(command.Context(), options, port, streams.Out)
		},
	}
	flags := command.Flags()
	config.AddFlags(flags)
	flags.BoolVarP(&allNamespaces, "all-namespaces", "A", false, "Show the Foos of all namespaces.")
	flags.Uint16Var(&port, "port", 0, "Port on 127.0.0.1; 0 is any free one.")
	flags.StringVar(&options.Audit, "audit", "", "Audit log of the API server, as JSON lines, to draw timelines from as it grows.")
	flags.StringVar(&options.You, "you", "", "User of the audit log to call \"you\".")
	controller.add(command)
	return command
}

// serve serves the page until ctx is done, and prints its address once it has something to
// show.
func serve(ctx context.Context, options ui.Options, port uint16, out io.Writer) error {
	live, err := ui.NewLive(options)
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
