// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Command record runs test suites on each mutant, in a git worktree of HEAD, and appends to
// a file which suite notices which mutant, after how long, and by which test. What the file
// has already is not run again, so that a recording of many hours can be interrupted.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/sample-controller/test/mutants"
)

// limit bounds a suite. What hangs has been noticed.
const limit = 15 * time.Minute

func main() {
	chosen := flag.String("mutants", ".", "regular expression for the mutants to try")
	suites := flag.String("suites", "test-unit test-policy simulation explore-small test-faults test-e2e", "targets of make to run on each")
	file := flag.String("results", "_output/mutants.csv", "file to append to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := record(ctx, *chosen, strings.Fields(*suites), *file)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "record: %v\n", err)
		os.Exit(1)
	}
}

func record(ctx context.Context, chosen string, suites []string, file string) (err error) {
	pattern, err := regexp.Compile(chosen)
	if err != nil {
		return err
	}
	results, known, err := open(file)
	if err != nil {
		return err
	}
	defer results.Close()
	tree, remove, err := worktree(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	tried := slices.DeleteFunc(mutants.All(), func(m mutants.Mutant) bool {
		_, _, err := m.Apply(tree)
		return !pattern.MatchString(m.Name) || errors.Is(err, mutants.ErrAbsent)
	})
	for i, m := range tried {
		for _, suite := range suites {
			if slices.ContainsFunc(known, func(row []string) bool { return row[0] == m.Name && row[1] == suite }) {
				continue
			}
			found, tryErr := try(ctx, tree, m, suite)
			if tryErr != nil {
				err = errors.Join(err, tryErr)
				break
			}
			fmt.Printf("%d of %d: %s: %s %s\n", i+1, len(tried), m.Name, suite, found)
			rows := csv.NewWriter(results)
			row := []string{m.Name, suite, strconv.FormatBool(found.by != ""), found.took.String(), found.by}
			if err := rows.WriteAll([][]string{row}); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	return err
}

// open opens a file of results, and returns the rows that it has.
func open(file string) (results *os.File, known [][]string, err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, nil, err
	}
	results, err = os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
	if err == nil {
		known, err = csv.NewReader(results).ReadAll()
	}
	return results, known, err
}

// worktree makes a git worktree of HEAD, and returns its directory.
func worktree(ctx context.Context) (tree string, remove func() error, err error) {
	folder, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return "", nil, err
	}
	tree = filepath.Join(folder, "tree")
	if err := git(ctx, "worktree", "add", "--detach", tree); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(folder))
	}
	// Its test would notice mutants, because most can't be applied twice.
	if err := os.WriteFile(filepath.Join(tree, "test", "mutants", "mutants_test.go"), []byte("package mutants_test\n"), 0o600); err != nil {
		return "", nil, err
	}
	return tree, func() error {
		return errors.Join(git(context.WithoutCancel(ctx), "worktree", "remove", "--force", tree), os.RemoveAll(folder))
	}, nil
}

func git(ctx context.Context, args ...string) error {
	if output, err := exec.CommandContext(ctx, "git", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return nil
}

// outcome says how long a suite ran on a mutant, and by what it noticed it, if it did.
type outcome struct {
	by   string
	took time.Duration
}

func (o outcome) String() string {
	if o.by == "" {
		return fmt.Sprintf("did not notice it in %s", o.took)
	}
	return fmt.Sprintf("noticed it after %s: %s", o.took, o.by)
}

// failed is how a line of a suite begins that says that something failed, and what.
var failed = regexp.MustCompile(`^\s*(?:--- FAIL: (\S+)|FAIL\s+(\S+)|(panic: .*)|==> (\S+): FAILED)`)

// try runs a suite with a mutant, up to the first failure.
func try(ctx context.Context, tree string, m mutants.Mutant, suite string) (outcome, error) {
	file, text, err := m.Apply(tree)
	if err != nil {
		return outcome{}, err
	}
	path := filepath.Join(tree, file)
	original, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = os.WriteFile(path, original, 0o600) }() // the next mutant is to have one mistake, too

	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	by := ""
	for _, command := range commands(file, suite) {
		if by, err = firstFailure(bounded, tree, command); by != "" || err != nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("the mutant %q: %w", m.Name, err)
	}
	return outcome{by, time.Since(began).Round(time.Second)}, errors.Join(err, ctx.Err())
}

// commands returns what runs a suite. Of the unit tests, those of the mutated file's package run
// twice, because they notice most mutants and take seconds.
func commands(file, suite string) [][]string {
	whole := []string{"make", suite, "FAULTS_SEED=1"}
	if suite == "test-unit" && strings.HasSuffix(file, ".go") {
		return [][]string{{"go", "test", "-vet=off", "-count=1", "-failfast", "-timeout=3m", "./" + filepath.Dir(file)}, whole}
	}
	return [][]string{whole}
}

// firstFailure runs a command until it prints that something failed, and returns what. An
// error says that the mutant can't be built.
func firstFailure(ctx context.Context, tree string, arguments []string) (by string, err error) {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	command := inGroup(running, tree, arguments)
	output, err := command.StdoutPipe()
	if err != nil {
		return "", err
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		return "", err
	}
	all := strings.Builder{}
	for lines := bufio.NewScanner(output); by == "" && lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if found := failed.FindStringSubmatch(lines.Text()); found != nil {
			by = cmp.Or(found[1:]...)
		}
		if strings.Contains(lines.Text(), "[build failed]") {
			cancel()
			return "", errors.Join(fmt.Errorf("it can't be built:\n%s", all.String()), command.Wait())
		}
	}
	if by != "" {
		cancel() // what follows does not change that
	}
	go func() { _, _ = io.Copy(io.Discard, output) }() // Wait closes it
	if err := command.Wait(); by == "" && err != nil {
		by = err.Error() // it hangs, or could not say what failed
	}
	return by, nil
}

// inGroup returns a command, which runs with its children in a process group that ends with ctx.
func inGroup(ctx context.Context, tree string, arguments []string) *exec.Cmd {
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Dir = tree
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = 20 * time.Second
	return command
}
