// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/timeline"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
)

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
			name, err := kindsWith("").First(args[0])
			if err != nil {
				return err
			}
			return draw(log, cache.NewObjectName(*config.Namespace, name), paths, output, streams)
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&paths, "audit", nil, "Audit logs as JSON lines, compressed by gzip or not, or - for standard input.")
	flags.StringVarP(config.Namespace, "namespace", "n", "", "Namespace of the Foo; default: all that have a Foo of this name.")
	flags.StringVar(&log.You, "you", "", "User to call \"you\".")
	flags.StringVarP(&output, "output", "o", output, "Format: text, svg or html.")
	return command
}

// draw reads audit logs, and draws what they have about a Foo.
func draw(log *timeline.Log, foo cache.ObjectName, paths []string, output string, streams genericiooptions.IOStreams) error {
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
	drawn, err := log.Of(foo.Namespace, foo.Name)
	if err != nil {
		return fmt.Errorf("the log has nothing about the Foo %q: %w", foo.Name, err)
	}
	return map[string]func(io.Writer) error{
		report.FormatText: drawn.WriteText, "svg": drawn.WriteSVG, "html": drawn.WriteHTML,
	}[output](streams.Out)
}
