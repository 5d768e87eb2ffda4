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

// Command newproject creates a new project from this one, with other names: module, API
// group, version, kind, plural.
//
//	go run ./tools/newproject -module github.com/acme/widgets -group acme.dev -kind Widget -dir ../widgets
//	go run ./tools/newproject -update -dir ../widgets
//
// It reads the files that git tracks, leaves out what concerns only this project
// (source.go), and gives the rest the new names (spelling.go, rename.go). It checks the
// names before it writes anything (validate.go, collisions.go, taken.go). Then it
// generates the clients of the new project, compiles the project, and searches it for old
// names (make.go, trace.go).
//
// The state that it generated is also a commit on a branch of the project. With -update,
// it commits the state that it generates now there, and merges the branch (update.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes beside 0.
const (
	exitFailure = 1
	exitRefused = 2
)

// refusal is an error in the request.
type refusal struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.As(err, new(refusal)):
		fmt.Fprintf(os.Stderr, "newproject: %v\n", err)
		os.Exit(exitRefused)
	case errors.Is(err, errMerge):
		fmt.Fprintf(os.Stderr, "newproject: %v\n", err)
		os.Exit(exitFailure)
	default:
		fmt.Fprintf(os.Stderr, "newproject: %v\nNothing was left behind.\n", err)
		os.Exit(exitFailure)
	}
}

// run creates or updates a project.
func run(ctx context.Context, args []string, out io.Writer) error {
	r, isUpdate, err := parseRequest(args, out)
	if err != nil {
		return err
	}
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	root, err := findRoot(folder)
	if err != nil {
		return refusal{err}
	}
	if isUpdate {
		return update(ctx, root, r.Dir, out)
	}
	dir, err := checkFolder(r.Dir, root)
	if err = errors.Join(checkNames(r), err); err != nil {
		return refusal{err}
	}
	project, err := planFrom(ctx, root, r)
	if err != nil {
		return err
	}
	m := &maker{project: project, dir: dir, out: out}
	if err := m.make(ctx, step{"Creating a git repository", m.finish}); err != nil {
		return err
	}
	m.sayNext()
	return nil
}

// planFrom plans the project of a request, from the files of this one.
func planFrom(ctx context.Context, root string, r request) (*project, error) {
	tree, err := readTree(root)
	if err != nil {
		return nil, err
	}
	src, err := readSources(tree, r.Lean)
	if err != nil {
		return nil, err
	}
	project, err := src.plan(deriveNames(r))
	if err != nil {
		return nil, refusal{err}
	}
	record, err := r.record(commitOf(ctx, root))
	if err != nil {
		return nil, err
	}
	project.files = append(project.files, record)
	return project, tracesError(findTraces(project.files, project.names))
}

func parseRequest(args []string, help io.Writer) (r request, isUpdate bool, err error) {
	flags := flag.NewFlagSet("newproject", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&r.Module, "module", "", "Path of the new Go module, such as github.com/acme/widgets.")
	flags.StringVar(&r.Group, "group", "", "API group, in a domain that you own, such as acme.dev.")
	flags.StringVar(&r.Version, "version", sample.Version, "API version, such as v1beta1.")
	flags.StringVar(&r.Kind, "kind", "", "Kind of the new resource, such as Widget or HTTPRoute.")
	flags.StringVar(&r.Plural, "plural", "", "Plural of the kind in lower case, such as people, if it differs from what the generators derive.")
	flags.StringVar(&r.Short, "short", "", "Short name for kubectl, such as wd; none if empty.")
	flags.BoolVar(&r.Lean, "lean", false, "Make only what a product needs: no simulation, demo, Helm chart, image builder or tools.")
	flags.StringVar(&r.Dir, "dir", "", "Folder for the new project, which must not exist, or be empty; with -update, the project's folder.")
	flags.BoolVar(&isUpdate, "update", false, "Merge what has changed here into a project that newproject has made. Only -dir goes with it.")
	err = flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, "newproject creates a new project from this one, with other names.\n\nUsage: go run ./tools/newproject -module PATH -group DOMAIN -kind Kind -dir FOLDER\n       go run ./tools/newproject -update -dir FOLDER\n\n")
		flags.SetOutput(help)
		flags.PrintDefaults()
		return r, isUpdate, err
	case err != nil:
		return r, isUpdate, refusal{fmt.Errorf("%w (see -help)", err)}
	case flags.NArg() > 0:
		return r, isUpdate, refusal{fmt.Errorf("unexpected argument %q: newproject takes flags only", flags.Arg(0))}
	case isUpdate && r != request{Version: sample.Version, Dir: r.Dir}:
		return r, isUpdate, refusal{errors.New("-update takes the names from the project: give only -dir")}
	}
	return r, isUpdate, nil
}
