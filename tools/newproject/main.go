// SPDX-License-Identifier: Apache-2.0

// Command newproject creates a new project from this one, with other names: module, API
// group, version, kind, plural.
//
//	go run ./tools/newproject -module github.com/acme/widgets -group acme.dev -kind Widget -dir ../widgets
//	go run ./tools/newproject -update -dir ../widgets
//	go run ./tools/newproject -add-kind Gadget -child networking.k8s.io/v1/Ingress -into ../widgets
//
// It reads the files that git tracks, leaves out what concerns only this project
// (source.go), and gives the rest the new names (spelling.go). It checks the names before it
// writes anything (validate.go, collisions.go, used.go). Then it generates the clients of
// the new project, compiles the project, and searches it for old names (make.go).
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
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
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

// next are the next steps with a new project. A test checks that the functions it names
// are in the files it names.
const next = `
{{dir}} is a controller for {{Kinds}} ({{plural}}.{{group}}, {{version}}). {{git}}.

{{see}}Make it yours:
  {{types}}
                               {{Kind}}Spec: add a field there, then run hack/update-codegen.sh
  internal/plan/deployment.go  Deployment       a row: what the {{Kind}} owns
  internal/plan/kinds.go       Kinds            the kinds and their rows, in order
  internal/plan/status.go      WithStatus       the {{Kind}}'s status
  docs/second-child.md adds a child to it step by step; docs/layout.md describes the rest.

Add new permissions, and new fields of the Deployment that the controller writes, to artifacts/deploy/permissions, too;
CONTRIBUTING.md has the rules. Check with
  go test ./...
  make test
`

// see is one of the next steps, unless the project is lean.
const see = `See it run (the first build compiles Kubernetes, which takes minutes):
  cd {{dir}}
  make demo

`

// sayNext prints the next steps.
func (m *maker) sayNext() {
	text := strings.Replace(next, "{{see}}", "", 1)
	if m.has("tools/demo/main.go") {
		text = strings.Replace(next, "{{see}}", see, 1)
	}
	types := "pkg/apis/" + m.Package + "/" + m.Version + "/types.go"
	fmt.Fprint(m.out, strings.NewReplacer("{{dir}}", m.dir, "{{Kinds}}", m.Kinds, "{{Kind}}", m.Kind, "{{plural}}", m.Plural,
		"{{group}}", m.Group, "{{version}}", m.Version, "{{git}}", m.hint, "{{types}}", types).Replace(text))
}

// git runs git in a folder and returns what it prints.
func git(ctx context.Context, dir string, arguments ...string) (string, error) {
	return gitWith(ctx, dir, nil, arguments...)
}

// gitWith runs git with additional variables of the environment.
func gitWith(ctx context.Context, dir string, environment []string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir, command.Env = dir, append(append(gitEnvironment(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"), environment...)
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w\n%s%s", strings.Join(arguments, " "), err, out, errors.String())
	}
	return string(out), err
}

// gitEnvironment returns the environment without the variables that make git use another
// repository, as in a hook.
func gitEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "GIT_DIR=") || strings.HasPrefix(variable, "GIT_WORK_TREE=") ||
			strings.HasPrefix(variable, "GIT_INDEX_FILE=") || strings.HasPrefix(variable, "GIT_PREFIX=")
	})
}

// knownToGit reports whether git has a name and an address to commit with.
func knownToGit(ctx context.Context, dir string) bool {
	_, err := git(ctx, dir, "var", "GIT_AUTHOR_IDENT")
	if err == nil {
		_, err = git(ctx, dir, "var", "GIT_COMMITTER_IDENT")
	}
	return err == nil
}

// author returns the options of git that name newproject as the author, if git does not
// know the user's name.
func author(ctx context.Context, dir string) []string {
	if knownToGit(ctx, dir) {
		return nil
	}
	return []string{"-c", "user.name=newproject", "-c", "user.email=newproject@localhost"}
}

// commitOf returns the commit of a clone, with -dirty at the end if files that git tracks
// have changed. It is empty if the folder is not a clone.
func commitOf(ctx context.Context, root string) string {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return ""
	}
	commit, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return ""
	}
	changes, err := git(ctx, root, "status", "--porcelain", "--untracked-files=no")
	if commit = strings.TrimSpace(commit); changes != "" || err != nil {
		commit += dirty
	}
	return commit
}

const dirty = "-dirty"
