// SPDX-License-Identifier: Apache-2.0

// Command docs runs the command blocks of documents, and compares their output with that
// in the documents. make docs-test runs it; README.md says how to mark a document.
// docs/claims tests what else the documents say about the code (names of tests and files,
// the requirements of go.mod).
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

// flags are those of the command.
type flags struct {
	root string
	only string
	keep bool
	v    bool
}

func main() {
	var f flags
	flag.StringVar(&f.root, "root", ".", "Root of the tree.")
	flag.StringVar(&f.only, "only", "", "Comma-separated documents to run, such as docs/tour.md. If empty: all.")
	flag.BoolVar(&f.keep, "keep", false, "Keep the copies of the tree, and print their paths.")
	flag.BoolVar(&f.v, "v", false, "Print the output of each block.")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "docs: unexpected argument %q: this command takes flags only\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends it at once
	err := runAll(ctx, f, os.Stdout)
	stop()
	if err != nil {
		if !errors.Is(err, errReported) {
			fmt.Fprintf(os.Stderr, "docs: %v\n", err)
		}
		os.Exit(1)
	}
}
