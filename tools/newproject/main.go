// SPDX-License-Identifier: Apache-2.0

// Command newproject generates a copy of this project under other names: module, API group,
// version, kind, plural.
//
//	go run ./tools/newproject -module github.com/acme/widgets -group acme.dev -kind Widget -dir ../widgets
//	go run ./tools/newproject -update -dir ../widgets
//	go run ./tools/newproject -add-kind Gadget -child networking.k8s.io/v1/Ingress -into ../widgets
//
// It checks the names (names.go), reads the files that git tracks, except those that concern
// only this project (source.go), and gives them the new names (spelling.go). Then it generates
// the new project's clients and compiles it, in a temporary directory.
//
// The generated state is also a commit on a branch of the project. With -update, newproject
// commits the state that it generates now to that branch, and merges the branch (update.go).
// With -add-kind, that state has one more kind (kinds.go).
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
	"path/filepath"
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

// defaultChild is what an object of an added kind owns by default.
const defaultChild = "v1/ConfigMap"

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
	Lean    bool   `json:"lean,omitempty"`
	// Kinds are the kinds that were added later.
	Kinds []addedKind `json:"kinds,omitempty"`
	Dir   string      `json:"-"`

	isUpdate    bool
	adds        *addedKind // to the project in Dir
	addsVersion string     // to the project in Dir
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

// run creates or updates a project.
func run(ctx context.Context, args []string, out io.Writer) error {
	r, err := parseRequest(args, out)
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	root, err := findRoot(here)
	if err != nil {
		return refusal{err}
	}
	if r.addsVersion != "" {
		return addVersion(ctx, r.Dir, r.addsVersion, out)
	}
	if r.isUpdate || r.adds != nil {
		return update(ctx, root, r.Dir, r.adds, out)
	}
	dir, err := checkDir(r.Dir, root)
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
	fmt.Fprintf(out, "\n%s contains a controller for %s (%s.%s, %s). %s.\nIts README.md shows how to make it yours.\n",
		dir, project.Kinds, project.Plural, project.Group, project.Version, m.hint)
	return nil
}

// planFrom plans the project of a request, from the files of this one.
func planFrom(ctx context.Context, root string, r request) (*project, error) {
	tree, err := readTree(ctx, root)
	if err != nil {
		return nil, err
	}
	b, err := newBlueprint(tree, r.Lean)
	if err != nil {
		return nil, err
	}
	project, err := b.plan(deriveNames(r), r.Kinds...)
	if err != nil {
		return nil, refusal{err}
	}
	record, err := r.record(commitOf(ctx, root))
	project.files = append(project.files, record)
	return project, err
}

// usage is the text above the flags in -help.
const usage = `newproject generates a copy of this project under other names, updates such a project, or adds a kind to it.

Usage: go run ./tools/newproject -module PATH -group DOMAIN -kind Kind -dir DIRECTORY
       go run ./tools/newproject -update -dir DIRECTORY
       go run ./tools/newproject -add-kind Kind -into DIRECTORY
       go run ./tools/newproject -add-version v1beta1 -into DIRECTORY

`

func parseRequest(args []string, help io.Writer) (r request, err error) {
	var add addedKind
	var into string
	flags := flag.NewFlagSet("newproject", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&r.Module, "module", "", "Path of the new Go module, such as github.com/acme/widgets.")
	flags.StringVar(&r.Group, "group", "", "API group, in a domain that you own, such as acme.dev.")
	flags.StringVar(&r.Version, "version", sample.Version, "API version, such as v1beta1.")
	flags.StringVar(&r.Kind, "kind", "", "Kind of the new resource, such as Widget or HTTPRoute.")
	flags.StringVar(&r.Plural, "plural", "", "Plural of the kind in lower case, such as people, if it is irregular.")
	flags.StringVar(&r.Short, "short", "", "Short name for kubectl, such as wd.")
	flags.BoolVar(&r.Lean, "lean", false, "Generate only the controller, its manifests, and the tests that need no cluster.")
	flags.StringVar(&r.Dir, "dir", "", "Directory for the new project, which must be new or empty; with -update, the project's directory.")
	flags.StringVar(&add.Kind, "add-kind", "", "Add a kind, such as Redirect, to the project in -into. Without -into, generate a project with two kinds.")
	flags.StringVar(&r.addsVersion, "add-version", "", "Add an API version, such as v1beta1, to the project in -into, which may be this one.")
	flags.StringVar(&into, "into", "", "Directory of the project that gets the kind or version. Use it only with -add-version, or -add-kind, -plural, -short and -child.")
	flags.StringVar(&add.Child, "child", "", "Kind of the objects that the added kind owns, as GROUP/VERSION/Kind, such as networking.k8s.io/v1/Ingress (default \""+defaultChild+"\").")
	flags.BoolVar(&r.isUpdate, "update", false, "Merge the changes in this clone into a generated project. Use it only with -dir.")
	err = flags.Parse(args)
	var given []string
	flags.Visit(func(f *flag.Flag) { given = append(given, f.Name) })
	onlyOf := func(names ...string) bool {
		return !slices.ContainsFunc(given, func(name string) bool { return !slices.Contains(names, name) })
	}
	add.Child = cmp.Or(add.Child, defaultChild)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, usage)
		flags.SetOutput(help)
		flags.PrintDefaults()
		return r, err
	case err != nil:
		return r, refusal{fmt.Errorf("%w (see -help)", err)}
	case flags.NArg() > 0:
		return r, refusal{fmt.Errorf("unexpected argument %q: newproject takes flags only", flags.Arg(0))}
	case r.addsVersion != "" && (into == "" || !onlyOf("add-version", "into")):
		return r, refusal{errors.New("-add-version needs -into, and takes the names from the project")}
	case r.addsVersion != "":
		return request{Dir: into, addsVersion: r.addsVersion}, nil
	case add.Kind == "" && (slices.Contains(given, "into") || slices.Contains(given, "child")):
		return r, refusal{errors.New("use -into and -child only with -add-kind")}
	case into != "" && !onlyOf("add-kind", "into", "plural", "short", "child"):
		return r, refusal{errors.New("-add-kind with -into takes the other names from the project: add only -plural, -short and -child")}
	case into != "":
		add.Plural, add.Short = r.Plural, r.Short
		return request{Dir: into, adds: &add}, nil
	case r.isUpdate && !onlyOf("update", "dir"):
		return r, refusal{errors.New("-update takes the names from the project: add only -dir")}
	case add.Kind != "":
		r.Kinds = []addedKind{add}
	}
	return r, nil
}

// project is a new project before code is generated.
type project struct {
	spelling

	files    []treeFile
	hasKinds bool // in addition to the first one
}

// has reports whether the project has a file.
func (p *project) has(name string) bool {
	return slices.ContainsFunc(p.files, func(file treeFile) bool { return file.path == name })
}

// maker generates a project in a temporary directory next to the target, so that a failure leaves
// nothing behind.
type maker struct {
	*project

	dir  string // the project's directory
	at   string // the directory in which it is generated first
	tmp  string // temporary directory of the commands
	out  io.Writer
	hint string // about the repository, for the hints at the end
}

// step is one step of the work, with the text that announces it.
type step struct {
	say string
	run func(context.Context) error
}

// command returns a step that runs a command in a directory of the project.
func (m *maker) command(say, dir string, command ...string) step {
	return step{say, func(ctx context.Context) error { return m.run(ctx, dir, command...) }}
}

// make writes the project, generates its code, compiles it, and then runs the last step.
func (m *maker) make(ctx context.Context, last step) (err error) {
	beside, err := os.MkdirTemp(filepath.Dir(m.dir), "."+filepath.Base(m.dir)+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(beside)) }()
	m.at, m.tmp = filepath.Join(beside, "project"), filepath.Join(beside, "tmp")
	began := time.Now()
	steps := []step{
		{fmt.Sprintf("Writing %d files", len(m.files)), m.write},
		m.command("Generating clients and the CustomResourceDefinition", ".", "hack/update-codegen.sh"),
		m.command("Tidying the root module", ".", "go", "mod", "tidy"),
	}
	if m.hasKinds && m.has("test/policy/go.mod") {
		steps = append(steps, m.command("Generating the admission policies", "test/policy",
			"go", "test", "-vet=off", "-run=^TestTheGeneratedPoliciesAreUpToDate$", ".", "-update"))
	}
	if m.has("hack/update-chart.sh") {
		steps = append(steps, m.command("Copying manifests into the Helm chart", ".", "hack/update-chart.sh"))
	}
	steps = append(steps, step{"Compiling the project and its tests", m.compile}, last)
	for _, step := range steps {
		stepBegan := time.Now()
		fmt.Fprintf(m.out, "%s ... ", step.say)
		if err := errors.Join(ctx.Err(), step.run(ctx)); err != nil {
			fmt.Fprintln(m.out)
			return fmt.Errorf("%s: %w", strings.ToLower(step.say[:1])+step.say[1:], err)
		}
		fmt.Fprintf(m.out, "%.0f s\n", time.Since(stepBegan).Seconds())
	}
	fmt.Fprintf(m.out, "Done in %.0f s.\n", time.Since(began).Seconds())
	return nil
}

func (m *maker) write(context.Context) error {
	if err := os.MkdirAll(m.tmp, 0o755); err != nil {
		return err
	}
	for _, file := range m.files {
		name := filepath.Join(m.at, filepath.FromSlash(file.path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, file.data, file.mode); err != nil {
			return err
		}
	}
	return nil
}

// errTaken explains compiler errors. Since this project compiles, only the new names can be the
// cause.
var errTaken = errors.New("one of the project's names has another meaning in this code or in generated code: choose another kind, plural or group, or add a word to it")

// compile compiles the root module, which imports the generated code, with its tests.
func (m *maker) compile(ctx context.Context) error {
	// go list compiles without linking. go vet would also analyze all imported packages.
	if err := m.run(ctx, ".", "go", "list", "-export", "-test", "-f=", "./..."); err != nil {
		return fmt.Errorf("%w\n%w", err, errTaken)
	}
	return nil
}

// finish creates the project's repository, and moves the project to its directory.
func (m *maker) finish(ctx context.Context) error {
	configured, _ := git(ctx, m.at, "config", "init.defaultBranch")
	m.hint = "The first commit contains all files"
	if !knownToGit(ctx, m.at) {
		m.hint += "; its author is newproject, because git does not know your name"
	}
	if _, err := git(ctx, m.at, "init", "--quiet", "--initial-branch="+stateBranch); err != nil {
		return err
	}
	message := fmt.Sprintf("%s: a controller for %s\n\nKind %s in the group %s, %s, as generated by newproject.", m.Program, m.Kinds, m.Kind, m.Group, m.Version)
	if err := m.commitState(ctx, message); err != nil {
		return err
	}
	if _, err := git(ctx, m.at, "checkout", "--quiet", "-b", cmp.Or(configured, "main")); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := os.ReadDir(m.dir); err == nil { // the directory may exist, if it is empty
		if err := os.Remove(m.dir); err != nil {
			return err
		}
	}
	return os.Rename(m.at, m.dir)
}

// run runs a command in a directory of the project, and returns its output in the error if it fails.
func (m *maker) run(ctx context.Context, dir string, arguments ...string) error {
	name := arguments[0]
	if strings.Contains(name, "/") {
		name = filepath.Join(m.at, name)
	}
	// The flags of hack/build.sh, so that later builds use the same build cache.
	_, err := output(ctx, filepath.Join(m.at, dir), []string{"TMPDIR=" + m.tmp, "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false", "CGO_ENABLED=0"},
		append([]string{name}, arguments[1:]...)...)
	return err
}

// output runs a command in a directory, and returns its standard output without the final newline.
func output(ctx context.Context, dir string, env []string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Dir, command.Env = dir, slices.Concat(gitEnvironment(), env, []string{"GIT_TERMINAL_PROMPT=0"})
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
