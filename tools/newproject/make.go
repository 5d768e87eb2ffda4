// SPDX-License-Identifier: Apache-2.0

// The steps that read the tree, and write, generate, compile and check the new project.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

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

// make writes the project, generates its code, and checks it. Then it does the last step.
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
		{"Generating clients and the CustomResourceDefinition", m.generate},
		{"Tidying the root module", m.tidy},
	}
	if m.has("test/policy/go.mod") && m.hasKinds {
		steps = append(steps, step{"Generating the admission policies", m.makePolicies})
	}
	if m.has("hack/update-chart.sh") {
		steps = append(steps, step{"Copying manifests into the Helm chart", m.updateChart})
	}
	steps = append(steps, step{"Compiling the project and its tests", m.compile}, step{"Searching for remains of the old names", m.checkTraces}, last)
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

// has reports whether the project has a file.
func (m *maker) has(name string) bool {
	return slices.ContainsFunc(m.files, func(file treeFile) bool { return file.path == name })
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

func (m *maker) generate(ctx context.Context) error {
	return m.run(ctx, ".", "hack/update-codegen.sh")
}

// tidy runs go mod tidy in the root module, whose requirements have changed.
func (m *maker) tidy(ctx context.Context) error {
	return m.run(ctx, ".", "go", "mod", "tidy")
}

// makePolicies generates the admission policies of the children of added kinds.
func (m *maker) makePolicies(ctx context.Context) error {
	return m.run(ctx, "test/policy", "go", "test", "-vet=off", "-run=^TestTheGeneratedPoliciesAreUpToDate$", ".", "-update")
}

// updateChart copies into the Helm chart what was generated: CustomResourceDefinitions and
// policies.
func (m *maker) updateChart(ctx context.Context) error {
	return m.run(ctx, ".", "hack/update-chart.sh")
}

// compile compiles the modules that import the generated code, with their tests.
func (m *maker) compile(ctx context.Context) error {
	for _, folder := range []string{".", "test/fuzz"} {
		// go list compiles without linking. go vet would also analyze all imported
		// packages.
		if err := m.run(ctx, folder, "go", "list", "-export", "-test", "-f=", "./..."); err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) checkTraces(context.Context) error {
	paths, err := walk(m.at)
	if err != nil {
		return err
	}
	var files []treeFile
	for _, name := range paths {
		data, err := os.ReadFile(filepath.Join(m.at, name))
		if err != nil {
			return err
		}
		files = append(files, treeFile{path: name, data: data})
	}
	return tracesError(findTraces(files, m.names))
}

// tracesError returns an error that lists the first traces, or nil if there are none.
func tracesError(found []trace) error {
	if len(found) == 0 {
		return nil
	}
	var list strings.Builder
	for _, t := range found[:min(len(found), 20)] {
		fmt.Fprintf(&list, "\n%s", t)
	}
	return fmt.Errorf("%d places contain parts of the old names:%s", len(found), list.String())
}

// finish creates the project's repository, and moves the project to its folder.
func (m *maker) finish(ctx context.Context) error {
	if path, _ := exec.LookPath("git"); path == "" {
		m.hint = "git is not installed, so there is no repository, and newproject -update will not work"
		return m.move()
	}
	m.hint = "The first commit contains all files"
	if !knownToGit(ctx, m.at) {
		m.hint += "; its author is newproject, because git does not know your name"
	}
	_, err := git(ctx, m.at, "-c", "init.defaultBranch=main", "init", "--quiet")
	if err != nil {
		return err
	}
	message := fmt.Sprintf("%s: a controller for %s\n\nKind %s in the group %s, %s.", m.Program, m.Kinds, m.Kind, m.Group, m.Version)
	commit, err := m.commitState(ctx, filepath.Join(m.at, ".git"), message)
	if err != nil {
		return err
	}
	for _, command := range [][]string{{"branch", stateBranch, commit}, {"reset", "--quiet", "--hard", commit}} {
		if _, err := git(ctx, m.at, command...); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.move()
}

// run runs a command in a folder of the project, and returns what it printed if it fails.
func (m *maker) run(ctx context.Context, folder, name string, arguments ...string) error {
	if strings.Contains(name, "/") {
		name = filepath.Join(m.at, name)
	}
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = filepath.Join(m.at, folder)
	// The flags of hack/build.sh, so that later builds use the same build cache.
	command.Env = append(gitEnvironment(), "TMPDIR="+m.tmp, "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false", "CGO_ENABLED=0", "GIT_TERMINAL_PROMPT=0")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(append([]string{filepath.Base(name)}, arguments...), " "), err, output.String())
	}
	return nil
}

// move moves the project to its folder. If the folder exists, move fills it.
func (m *maker) move() error {
	if _, err := os.Lstat(m.dir); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(m.at, m.dir)
	}
	entries, err := os.ReadDir(m.at)
	if err != nil {
		return err
	}
	if there, err := os.ReadDir(m.dir); err != nil || len(there) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty any more", m.dir))
	}
	var moved []string
	for _, entry := range entries {
		name := filepath.Join(m.dir, entry.Name())
		if err := os.Rename(filepath.Join(m.at, entry.Name()), name); err != nil {
			for _, name := range slices.Backward(moved) {
				err = errors.Join(err, os.RemoveAll(name))
			}
			return err
		}
		moved = append(moved, name)
	}
	return nil
}

// treeFile is a file of a project, at a path with slashes.
type treeFile struct {
	path string
	data []byte
	mode fs.FileMode
}

// isText reports whether a file is text, and can be searched for names.
func (f treeFile) isText() bool {
	return utf8.Valid(f.data) && bytes.IndexByte(f.data, 0) < 0
}

// readTree reads the files of this project: those that git tracks, or without git all
// except build output.
func readTree(root string) ([]treeFile, error) {
	paths, err := gitFiles(root)
	if err != nil {
		paths, err = walk(root)
	}
	if err != nil {
		return nil, err
	}
	var files []treeFile
	for _, name := range paths {
		full := filepath.Join(root, filepath.FromSlash(name))
		info, err := os.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but not yet in the index
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is neither a file nor a folder: newproject can't copy it", name)
		}
		data, err := os.ReadFile(full)
		if err != nil {
			return nil, err
		}
		files = append(files, treeFile{name, data, info.Mode().Perm() | 0o600})
	}
	return files, nil
}

// gitFiles lists the files that git tracks.
func gitFiles(root string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return nil, err // the sources have no .git, but may be within another clone
	}
	out, err := git(context.Background(), root, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	files := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	slices.Sort(files)
	return slices.Compact(files), nil
}

// walk lists the files of a tree that is not a git repository.
func walk(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, full)
		name := filepath.ToSlash(relative)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "_output", ".golangci-cache", "testdata/rapid"}, name):
			return filepath.SkipDir
		case !entry.IsDir() && name != sample.Program && path.Ext(name) != ".test" && path.Ext(name) != ".out":
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// findRoot returns this project's root, given a folder in it.
func findRoot(folder string) (string, error) {
	for at := folder; ; at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && bytes.HasPrefix(data, []byte("module "+sample.Module+"\n")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a clone of %s: run newproject from there", folder, sample.Module)
		}
	}
}
