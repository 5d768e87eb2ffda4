// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/sample-controller/tools/internal/timeline"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
)

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
