/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Command skew runs the end-to-end tests on each Kubernetes that devcluster can
// emulate, one after the other, and writes the result as a table into a
// document, between two comments. It goes on after a failure, and says so in
// the table and in its exit code.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// logFolder is where the tests' output goes, a file for each Kubernetes.
const logFolder = "_output/skew"

// devcluster is the program that starts clusters, seen from the repository's root. hack/check.sh uses the same.
const devcluster = "bin/devcluster"

type options struct {
	document string
	minors   []string
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "skew:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	inside, err := readVersions(ctx)
	if err != nil {
		return err
	}
	if o.minors == nil {
		o.minors = inside.emulated
	}
	if i := slices.IndexFunc(o.minors, func(minor string) bool { return !slices.Contains(inside.emulated, minor) }); i >= 0 {
		return fmt.Errorf("-minors: devcluster can't emulate %s, only %s", o.minors[i], strings.Join(inside.emulated, ", "))
	}
	if err := place(o.document, nil, inside.emulated); err != nil {
		return err // rather now than after a quarter of an hour
	}
	if err := os.MkdirAll(logFolder, 0o750); err != nil {
		return err
	}
	failures, err := runAll(ctx, o, inside, out)
	if err == nil && failures > 0 {
		err = fmt.Errorf("tests failed on %d of %d Kubernetes", failures, len(o.minors))
	}
	return err
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	var minors string
	flags := flag.NewFlagSet("skew", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.document, "document", "docs/operations.md", "the `file` with the table")
	flags.StringVar(&minors, "minors", "", "comma-separated `versions` to run, such as 1.34,1.35; the rows of the others stay (default all that devcluster can emulate)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if minors != "" {
		o.minors = strings.Split(minors, ",")
	}
	return o, nil
}

// runAll runs the tests on each Kubernetes wanted, and returns on how many of them some failed. The document has each
// row at once, so that a run that is interrupted has not been for nothing.
func runAll(ctx context.Context, o options, inside versions, out io.Writer) (failures int, err error) {
	newest, err := readAbilities(ctx, inside.newest())
	if err != nil {
		return 0, err
	}
	for _, minor := range o.minors {
		began := time.Now()
		log := filepath.Join(logFolder, minor+".log")
		fmt.Fprintf(out, "%s: the output goes to %s\n", minor, log)
		has, err := readAbilities(ctx, minor)
		if err != nil {
			return failures, err
		}
		result, err := test(ctx, minor, log, out)
		if err != nil {
			return failures, err
		}
		fmt.Fprintf(out, "%s: %s in %d s\n", minor, result, int(time.Since(began).Seconds()))
		if !result.ok() {
			failures++
		}
		done := row{minor: minor, kubernetes: inside.kubernetes, day: began.UTC().Format(time.DateOnly), outcome: result, absent: has.lacks(newest)}
		if err := place(o.document, []row{done}, inside.emulated); err != nil {
			return failures, err
		}
	}
	return failures, nil
}
