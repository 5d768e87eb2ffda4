// SPDX-License-Identifier: Apache-2.0

// Command newproject generates a project on the library in this repository: a controller for a kind of
// your own, or for one of Kubernetes' own.
//
//	go run ./tools/newproject -module github.com/acme/widgets -group acme.dev -kind Widget -dir ../widgets
//	go run ./tools/newproject -module github.com/acme/quotas -group acme.dev -kind-of v1/Namespace -dir ../quotas
//	go run ./tools/newproject -update -dir ../widgets
//	go run ./tools/newproject -add-kind Gadget -child v1/ConfigMap -into ../widgets
//
// It checks the names (names.go), and writes the project in a temporary directory (project.go): the
// library, the loop, and what is the project's own, from the directory template. An update replaces the
// library and merges the loop (update.go). kinds.go adds a kind.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Exit codes other than 0.
const (
	exitFailure = 1
	exitRefused = 2
)

// refusal is an error in the request.
type refusal struct{ error }

// request is the user's request. Plural and Short may be empty. The new project records it in
// stateFile.
type request struct {
	Module  string `json:"module"`
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Plural  string `json:"plural,omitempty"`
	Short   string `json:"short,omitempty"`
	// KindOf is the kind of Kubernetes that takes the place of Version, Kind, Plural and Short, or "".
	KindOf string `json:"kindOf,omitempty"`
	// Child is the kind of the objects that the kind owns.
	Child string `json:"-"`
	// Library is where the project has the library from: copyDir, or PATH@VERSION of a module.
	Library string `json:"library"`
	// Commit is that of the copy, for the reader.
	Commit string `json:"commit,omitempty"`
}

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
		fmt.Fprintf(os.Stderr, "newproject: %v\nNo files were left behind.\n", err)
		os.Exit(exitFailure)
	}
}

// usage is the text above the flags in -help.
const usage = `newproject generates a project on this library, updates such a project, or adds a kind to it.

Usage: go run ./tools/newproject -module PATH -group DOMAIN -kind Kind -dir DIRECTORY
       go run ./tools/newproject -module PATH -group DOMAIN -kind-of GROUP/VERSION/Kind -child GROUP/VERSION/Kind -dir DIRECTORY
       go run ./tools/newproject -update -dir DIRECTORY
       go run ./tools/newproject -add-kind Kind -child GROUP/VERSION/Kind -into DIRECTORY

`

// run does what the arguments request.
func run(ctx context.Context, args []string, out io.Writer) error {
	var r request
	var dir, added, child, into string
	flags := flag.NewFlagSet("newproject", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&r.Module, "module", "", "Path of the new Go module, such as github.com/acme/widgets.")
	flags.StringVar(&r.Group, "group", "", "API group, in a domain that you own, such as acme.dev; with -kind-of, the prefix of labels and annotations.")
	flags.StringVar(&r.KindOf, "kind-of", "", "Instead of -kind, one of Kubernetes' own kinds as GROUP/VERSION/Kind, such as networking.k8s.io/v1/Ingress: a project without an API of its own.")
	flags.StringVar(&r.Version, "version", "v1alpha1", "API version, such as v1beta1.")
	flags.StringVar(&r.Kind, "kind", "", "Kind of the new resource, such as Widget or HTTPRoute.")
	flags.StringVar(&r.Plural, "plural", "", "Plural of the kind in lower case, such as people, if it is irregular.")
	flags.StringVar(&r.Short, "short", "", "Short name for kubectl, such as wd.")
	flags.StringVar(&dir, "dir", "", "Directory for the new project, which must be new or empty; with -update, the project's directory.")
	flags.StringVar(&r.Library, "library", "", "Module and version to use as the library, such as github.com/acme/sample-controller@v0.4.0, instead of a copy of this clone.")
	flags.StringVar(&added, "add-kind", "", "Add a kind, such as Gadget, to the project in -into.")
	flags.StringVar(&into, "into", "", "Directory of the project that gets the kind. Use it only with -add-kind, -plural, -short and -child.")
	flags.StringVar(&child, "child", "v1/ConfigMap", "Kind of the objects that the kind of -add-kind or -kind-of owns, as GROUP/VERSION/Kind, such as networking.k8s.io/v1/Ingress.")
	isUpdate := flags.Bool("update", false, "Update the library in a generated project, and merge the changes of the loop. Use it only with -dir and -library.")
	err := flags.Parse(args)
	takes := func(names ...string) bool {
		ok := true
		flags.Visit(func(f *flag.Flag) { ok = ok && slices.Contains(names, f.Name) })
		return ok
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return err
	case err != nil:
		return refusal{fmt.Errorf("%w (see -help)", err)}
	case flags.NArg() > 0:
		return refusal{fmt.Errorf("unexpected argument %q: newproject takes flags only", flags.Arg(0))}
	case *isUpdate && !takes("update", "dir", "library"):
		return refusal{errors.New("-update takes the names from the project: add only -dir and -library")}
	case added != "" && (into == "" || !takes("add-kind", "into", "child", "plural", "short")):
		return refusal{errors.New("-add-kind needs -into, and takes the other names from the project: add only -child, -plural and -short")}
	case r.KindOf != "" && !takes("module", "group", "kind-of", "child", "dir", "library"):
		return refusal{errors.New("-kind-of takes the kind, its version and its names from Kubernetes: add only -module, -group, -child, -dir and -library")}
	case added == "" && r.KindOf == "" && !takes("module", "group", "version", "kind", "kind-of", "plural", "short", "dir", "library", "update"):
		return refusal{errors.New("use -into only with -add-kind, and -child only with -add-kind or -kind-of")}
	}
	root, err := findRoot()
	switch {
	case err != nil:
		return refusal{err}
	case *isUpdate:
		return update(ctx, root, dir, r.Library, out)
	case added != "":
		return addKind(ctx, root, into, request{Kind: added, Plural: r.Plural, Short: r.Short}, child, out)
	}
	if r.Child = "apps/v1/Deployment"; r.KindOf != "" {
		r.Child, r.Version = child, ""
	}
	return create(ctx, root, dir, r, out)
}

// steps runs functions one after the other, and says what each does and how long it took.
func steps(ctx context.Context, out io.Writer, all ...step) error {
	for _, step := range all {
		began := time.Now()
		fmt.Fprintf(out, "%s ... ", step.say)
		if err := cmp.Or(ctx.Err(), step.run(ctx)); err != nil {
			fmt.Fprintln(out)
			return fmt.Errorf("%s: %w", strings.ToLower(step.say[:1])+step.say[1:], err)
		}
		fmt.Fprintf(out, "%.0f s\n", time.Since(began).Seconds())
	}
	return nil
}

type step struct {
	say string
	run func(context.Context) error
}

// output runs a command in a directory, and returns its standard output without the final newline.
func output(ctx context.Context, dir string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Dir = dir
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { // those that point git to another repository, as in a hook
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"}, name)
	})
	command.Env = append(command.Env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s%s", strings.Join(arguments, " "), err, stdout.String(), stderr.String())
	}
	return strings.TrimSuffix(stdout.String(), "\n"), err
}
