// SPDX-License-Identifier: Apache-2.0

// Command newproject creates a new project from this one, with other names: module, API
// group, version, kind, plural.
//
//	go run ./tools/newproject -module github.com/acme/widgets -group acme.dev -kind Widget -dir ../widgets
//	go run ./tools/newproject -update -dir ../widgets
//	go run ./tools/newproject -add-kind Gadget -child networking.k8s.io/v1/Ingress -into ../widgets
//
// It reads the files that git tracks, leaves out what concerns only this project
// (source.go), and gives the rest the new names (spelling.go, rename.go). It checks the
// names before it writes anything (validate.go, collisions.go, taken.go). Then it
// generates the clients of the new project, compiles the project, and searches it for old
// names (make.go, trace.go).
//
// The state that it generated is also a commit on a branch of the project. With -update,
// it commits the state that it generates now there, and merges the branch (update.go).
// With -add-kind, that state has one kind more (kinds.go).
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"syscall"
)

// Exit codes beside 0.
const (
	exitFailure = 1
	exitRefused = 2
)

// defaultChild is what an object of an added kind owns by default.
const defaultChild = "v1/ConfigMap"

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
	r, kind, isUpdate, err := parseRequest(args, out)
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
	if isUpdate || kind != nil {
		return update(ctx, root, r.Dir, kind, out)
	}
	dir, err := checkFolder(r.Dir, root)
	err = errors.Join(checkNames(r), err)
	for i, kind := range r.Kinds {
		others := r
		others.Kinds = r.Kinds[:i]
		err = errors.Join(err, kind.check(others))
	}
	if err != nil {
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
	project, err := src.plan(deriveNames(r), r.Kinds...)
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

func parseRequest(args []string, help io.Writer) (r request, kind *addedKind, isUpdate bool, err error) {
	var add addedKind
	var into string
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
	flags.StringVar(&add.Kind, "add-kind", "", "Add a kind, such as Redirect, to the project that -into names, or make a new one with two kinds. With -into, only -plural, -short and -child go with it.")
	flags.StringVar(&into, "into", "", "Folder of the project that gets the kind.")
	flags.StringVar(&add.Child, "child", "", "What an object of the added kind owns, as GROUP/VERSION/Kind, such as networking.k8s.io/v1/Ingress (default \""+defaultChild+"\").")
	flags.BoolVar(&isUpdate, "update", false, "Merge what has changed here into a project that newproject has made. Only -dir goes with it.")
	err = flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, "newproject creates a new project from this one, with other names.\n\nUsage: go run ./tools/newproject -module PATH -group DOMAIN -kind Kind -dir FOLDER\n       go run ./tools/newproject -update -dir FOLDER\n       go run ./tools/newproject -add-kind Kind -into FOLDER\n\n")
		flags.SetOutput(help)
		flags.PrintDefaults()
		return r, nil, isUpdate, err
	case err != nil:
		return r, nil, isUpdate, refusal{fmt.Errorf("%w (see -help)", err)}
	case flags.NArg() > 0:
		return r, nil, isUpdate, refusal{fmt.Errorf("unexpected argument %q: newproject takes flags only", flags.Arg(0))}
	case add.Kind == "" && (into != "" || add.Child != ""):
		return r, nil, isUpdate, refusal{errors.New("-into and -child go with -add-kind only")}
	case add.Kind != "" && into == "" && !isUpdate:
		r.Kinds = []addedKind{{Kind: add.Kind, Child: cmp.Or(add.Child, defaultChild)}}
		return r, nil, false, nil
	case add.Kind != "" && (isUpdate || !reflect.DeepEqual(r, request{Version: sample.Version, Plural: r.Plural, Short: r.Short})):
		return r, nil, isUpdate, refusal{errors.New("-add-kind with -into takes the other names from the project: give only -plural, -short and -child")}
	case add.Kind != "":
		add.Plural, add.Short, add.Child = r.Plural, r.Short, cmp.Or(add.Child, defaultChild)
		return request{Dir: into}, &add, false, nil
	case isUpdate && !reflect.DeepEqual(r, request{Version: sample.Version, Dir: r.Dir}):
		return r, nil, isUpdate, refusal{errors.New("-update takes the names from the project: give only -dir")}
	}
	return r, nil, isUpdate, nil
}
