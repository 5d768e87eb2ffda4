// SPDX-License-Identifier: Apache-2.0

// The steps that write, generate, compile and commit a project.

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// project is a new project before anything is generated.
type project struct {
	spelling

	files    []treeFile
	hasKinds bool // beside the first one
}

// has reports whether the project has a file.
func (p *project) has(name string) bool {
	return slices.ContainsFunc(p.files, func(file treeFile) bool { return file.path == name })
}

// maker makes a project in a temporary folder beside its own, so that a failure leaves
// nothing behind.
type maker struct {
	*project

	dir  string // the project's folder
	at   string // the folder in which it is made first
	tmp  string // temporary folder of the commands
	out  io.Writer
	hint string // about the repository, for the hints at the end
}

// step is a part of the work, with the text that announces it.
type step struct {
	say string
	run func(context.Context) error
}

// command returns a step that runs a command in a folder of the project.
func (m *maker) command(say, folder string, command ...string) step {
	return step{say, func(ctx context.Context) error { return m.run(ctx, folder, command...) }}
}

// make writes the project, generates its code, and compiles it. Then it does the last step.
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

// errTaken explains errors of the compiler: this project compiles, and so would the new one,
// if not for its names.
var errTaken = errors.New("a name of the project has another meaning in this code or in generated code: choose another kind, plural or group, or add a word")

// compile compiles the root module, which imports the generated code, with its tests.
func (m *maker) compile(ctx context.Context) error {
	// go list compiles without linking. go vet would also analyze all imported packages.
	if err := m.run(ctx, ".", "go", "list", "-export", "-test", "-f=", "./..."); err != nil {
		return fmt.Errorf("%w\n%w", err, errTaken)
	}
	return nil
}

// finish creates the project's repository, and moves the project to its folder.
func (m *maker) finish(ctx context.Context) error {
	configured, _ := git(ctx, m.at, "config", "init.defaultBranch")
	m.hint = "The first commit contains all files"
	if !knownToGit(ctx, m.at) {
		m.hint += "; its author is newproject, because git does not know your name"
	}
	if _, err := git(ctx, m.at, "init", "--quiet", "--initial-branch="+stateBranch); err != nil {
		return err
	}
	message := fmt.Sprintf("%s: a controller for %s\n\nKind %s in the group %s, %s, as newproject generates it.", m.Program, m.Kinds, m.Kind, m.Group, m.Version)
	if err := m.commitState(ctx, message); err != nil {
		return err
	}
	if _, err := git(ctx, m.at, "checkout", "--quiet", "-b", cmp.Or(configured, "main")); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := os.ReadDir(m.dir); err == nil { // the folder may exist, if it is empty
		if err := os.Remove(m.dir); err != nil {
			return err
		}
	}
	return os.Rename(m.at, m.dir)
}

// run runs a command in a folder of the project, and returns what it printed if it fails.
func (m *maker) run(ctx context.Context, folder string, arguments ...string) error {
	name := arguments[0]
	if strings.Contains(name, "/") {
		name = filepath.Join(m.at, name)
	}
	// The flags of hack/build.sh, so that later builds use the same build cache.
	_, err := output(ctx, filepath.Join(m.at, folder), []string{"TMPDIR=" + m.tmp, "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false", "CGO_ENABLED=0"},
		append([]string{name}, arguments[1:]...)...)
	return err
}

// output runs a command in a folder, and returns what it prints, without the last line's end.
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
