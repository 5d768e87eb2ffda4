// SPDX-License-Identifier: Apache-2.0

// Command timeline draws an audit log of an API server: a lane for each actor, a mark for
// each write, and arrows from cause to effect. Each act of a person, such as a create, a
// scale or a delete, has a panel of its own. With -text it prints a line for each write
// instead.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"example.com/sample-controller/tools/internal/printable"
	"example.com/sample-controller/tools/internal/timeline"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
)

// standard is the name of standard input and output.
const standard = "-"

// options are the command's flags.
type options struct {
	logs   []string
	output string
	text   bool
	log    timeline.Log
}

// usageError is an error of the command line.
type usageError struct{ error }

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "timeline: %s\n", printable.Quote(err.Error())) // it may quote the log
		if errors.As(err, new(usageError)) {
			os.Exit(exitUsage)
		}
		os.Exit(exitFailure)
	}
}

// run executes a command line. It writes warnings and the summary to messages.
func run(args []string, stdin io.Reader, stdout, messages io.Writer) error {
	opts, err := parseOptions(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	add := opts.log.Add
	if opts.text {
		add = printWrites(stdout, opts.log.Namespace)
	}
	for _, path := range opts.logs {
		if err := timeline.ReadLog(path, stdin, add, messages); err != nil {
			return err
		}
	}
	if opts.text {
		return nil
	}
	return draw(opts, stdout, messages)
}

// draw writes the picture of the log.
func draw(opts *options, stdout, messages io.Writer) error {
	picture, err := opts.log.Picture()
	if err != nil {
		return fmt.Errorf("%w; see -object and -namespace in -help", err)
	}
	var document bytes.Buffer
	write := picture.WriteSVG
	if isHTML(opts.output) {
		write = picture.WriteHTML
	}
	if err := write(&document); err != nil {
		return err
	}
	if opts.output == standard {
		_, err := stdout.Write(document.Bytes())
		return err
	}
	if err := os.WriteFile(opts.output, document.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(messages, "%s: %s\n", opts.output, picture.Size())
	return nil
}

func parseOptions(args []string, help io.Writer) (*options, error) {
	var opts options
	flags := flag.NewFlagSet("timeline", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("audit", "The audit `log` to draw, as JSON lines, compressed by gzip or not; - is standard input. "+
		"Repeat the flag for each file of a rotated log.", func(path string) error {
		opts.logs = append(opts.logs, path)
		return nil
	})
	flags.StringVar(&opts.output, "o", "timeline.svg", "The `file` to write: .svg, or .html for a page with a table below the picture; - is standard output, as SVG.")
	flags.BoolVar(&opts.text, "text", false, "Print a line for each write (time, actor, request, response code) instead of a picture. Only -audit and -namespace can be used with it.")
	flags.StringVar(&opts.log.Namespace, "namespace", "", "Draw or print writes in this namespace only.")
	flags.StringVar(&opts.log.You, "you", "", "The `user` to show as \"you\".")
	flags.Func("object", "Draw writes on this `object`, on the objects it owns, and the writes they cause: RESOURCE/NAME, RESOURCE, or all. "+
		"Default: foos if the log contains any, else all.", func(text string) error {
		selection, err := timeline.ParseSelection(text)
		opts.log.Object = &selection
		return err
	})
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, "timeline draws an audit log.\n\nUsage: go run ./tools/timeline -audit=FILE [flags]\n\n")
		flags.SetOutput(help)
		flags.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, usageError{fmt.Errorf("%w (see -help)", err)}
	case flags.NArg() > 0:
		return nil, usageError{fmt.Errorf("unexpected argument %q: give a log as -audit=FILE", flags.Arg(0))}
	case len(opts.logs) == 0:
		return nil, usageError{errors.New("-audit is missing: name the audit log to draw, or - for standard input")}
	case opts.text && opts.log.Object != nil:
		return nil, usageError{errors.New("-object: must not be given with -text")}
	case opts.output != standard && !isHTML(opts.output) && filepath.Ext(opts.output) != ".svg":
		return nil, usageError{fmt.Errorf("-o=%s: must end with .svg or .html", opts.output)}
	}
	return &opts, nil
}

func isHTML(path string) bool {
	return strings.HasPrefix(filepath.Ext(path), ".htm")
}
