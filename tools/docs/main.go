// SPDX-License-Identifier: Apache-2.0

// Command docs runs the command blocks of documents, and compares their output with that
// in the documents. make docs-test runs it; README.md says how to mark a document.
// docs/claims tests what else the documents say about the code (names of tests and files,
// the requirements of go.mod).
//
// markdown.go, directive.go and document.go turn a document into steps; compare.go
// compares outputs; sandbox.go copies the tree, and shell.go runs bash in the copy;
// runner.go and acts.go execute the steps, and report.go reports the results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// options are the command's flags.
type options struct {
	root string
	only string
	keep bool
	v    bool
}

func main() {
	var opts options
	flag.StringVar(&opts.root, "root", ".", "Root of the tree.")
	flag.StringVar(&opts.only, "only", "", "Comma-separated documents to run, such as docs/tour.md. If empty: all.")
	flag.BoolVar(&opts.keep, "keep", false, "Keep the copies of the tree, and print their paths.")
	flag.BoolVar(&opts.v, "v", false, "Print the output of each block.")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "docs: unexpected argument %q: this command takes flags only\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends it at once
	err := runAll(ctx, opts, os.Stdout)
	stop()
	if err != nil {
		if !errors.Is(err, errReported) {
			fmt.Fprintf(os.Stderr, "docs: %v\n", err)
		}
		os.Exit(1)
	}
}
