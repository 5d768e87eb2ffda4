// SPDX-License-Identifier: Apache-2.0

// Command conform judges a controller: it runs it on a real control plane, without a fault
// and with many, and says which levels of robustness it has. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/sample-controller/conform/judge"
	"example.com/sample-controller/test/testcluster"
)

// The exit statuses, apart from 10 and more: the first level that does not hold.
const (
	exitOK       = 0
	exitFailure  = 1
	exitUsage    = 2
	exitLevels   = 10
	attempts     = 3
	recordedRuns = 3
)

// options are the command line.
type options struct {
	crds, objects    []string
	settings, output string
	// arguments are all that conform was given, and own how many of them are its own.
	arguments         []string
	own               int
	devcluster, cases string
	list              bool
	parallel          int
	args              []string
}

// runner has what the trials share.
type runner struct {
	options
	settings *settings
	plane    *testcluster.ControlPlane
	recorder *recorder
	clients  *clients
	// account is what the controller connects as.
	account *rest.Config
	// folder has the kubeconfigs.
	folder string
	steps  []step
	// clusterWide is true if objects have no namespace. Then each run has the whole cluster, one after
	// another, and otherwise a namespace.
	clusterWide bool
	// planned is the number of cases, and ended how many have ended.
	planned  int
	ended    atomic.Int32
	record   *judge.Record
	statuses []string
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	klog.SetLogger(klog.New(nil)) // the recorder's watches complain when a fault ends them
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &runner{}
	if err := r.parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		fmt.Fprintf(os.Stderr, "conform: %v\n", err)
		return exitUsage
	}
	results, err := r.judge(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "conform: %v\n", err)
		return exitFailure
	}
	for i, level := range judge.Levels() {
		if results.Verdict(level) == "fails" {
			return exitLevels + i
		}
	}
	return exitOK
}

func (r *runner) parse(args []string) error {
	flags := flag.NewFlagSet("conform", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "Usage: conform [flags] -crd DIR -object FILE [-object FILE] -- PROGRAM ARGS")
		flags.PrintDefaults()
	}
	list := func(to *[]string) func(string) error {
		return func(value string) error { *to = append(*to, value); return nil }
	}
	flags.Func("crd", "`file or directory` with CustomResourceDefinitions; may be repeated", list(&r.crds))
	flags.Func("object", "`file` that a user applies; may be repeated: a second file changes or adds objects", list(&r.objects))
	flags.StringVar(&r.options.settings, "settings", "", "`file` with settings, in YAML")
	flags.StringVar(&r.output, "output", "_output/conform", "`directory` for the report, and the requests and logs of failed cases")
	flags.StringVar(&r.devcluster, "devcluster", "bin/devcluster", "`program` of the development cluster")
	flags.StringVar(&r.cases, "run", "", "run only the cases whose names match this `regular expression`")
	flags.BoolVar(&r.list, "list", false, "list the cases, and run none")
	flags.IntVar(&r.parallel, "parallel", 10, "`number` of cases to run at once")
	r.arguments = slices.Clone(args)
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if r.settings, err = readSettings(r.options.settings); err != nil {
		return err
	}
	r.args, r.own = flags.Args(), len(args)-flags.NArg()
	for given, otherwise := range map[*[]string][]string{&r.crds: r.settings.CRDs, &r.objects: r.settings.Objects, &r.args: r.settings.Program} {
		if len(*given) == 0 {
			*given = otherwise
		}
	}
	switch {
	case len(r.args) == 0:
		return errors.New("no program: conform [flags] -- PROGRAM ARGS")
	case len(r.objects) == 0:
		return errors.New("no -object")
	}
	if strings.Contains(r.args[0], "/") && !strings.HasPrefix(r.args[0], moduleVariable) {
		path, err := filepath.Abs(r.args[0])
		if err != nil {
			return err
		}
		r.args[0] = path
	}
	if _, err := regexp.Compile(r.cases); err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	return nil
}

// judge does everything between the command line and the exit status.
func (r *runner) judge(ctx context.Context) (*judge.Results, error) {
	began := time.Now()
	var err error
	if r.folder, err = os.MkdirTemp("", "conform-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(r.folder)
	if err := r.useModule(ctx); err != nil {
		return nil, err
	}
	r.progress("Starting the control plane")
	if r.plane, err = testcluster.StartControlPlane(ctx, r.devcluster, r.folder, r.settings.ControllerManager); err != nil {
		return nil, err
	}
	defer func() { _ = r.plane.Close() }() // the folder is removed, too
	if err := r.install(ctx); err != nil {
		return nil, err
	}
	results := &judge.Results{Command: r.commandLine(), Chosen: r.cases}
	if err := r.judgeDefinitions(ctx, results); err != nil {
		return nil, err
	}
	r.progress("Recording runs without a fault")
	recorded, err := r.recordRuns(ctx)
	if err != nil {
		return nil, err
	}
	planned := judge.Plan(r.record, len(r.settings.LeaderElection) > 0)
	cases := r.chosen(planned, results)
	if len(cases) == 0 {
		return nil, fmt.Errorf("none of the %d cases, such as %s, matches -run %s: -list lists them", len(planned), planned[0].Name, r.cases)
	}
	if r.list {
		for _, c := range cases {
			fmt.Println(c.Name)
		}
		return results, nil
	}
	if !judge.SaysReady(recorded[0]) {
		results.NotJudged(judge.Honest, "status", "no object that conform applied ever says that it is ready")
	}
	if !slices.ContainsFunc(r.record.Requests, func(q judge.Request) bool { return q.Verb == "delete" }) {
		results.NotJudged(judge.CacheSafe, "deletions have a precondition", "without a fault, it deletes nothing")
	}
	if len(r.settings.LeaderElection) == 0 {
		results.NotJudged(judge.Replicas, "leader", "the settings have no leaderElection")
	}
	r.planned = len(cases)
	r.progress("%d writes in %d steps without a fault; %d cases", len(r.record.Writes), len(r.steps), len(cases))
	if !r.record.CreatesSomething() {
		r.progress("Without a fault, it creates nothing: has the program all that it needs, such as variables in env?")
	}
	if err := r.runAll(ctx, cases, results); err != nil {
		return nil, err
	}
	results.Took = time.Since(began).Round(time.Second)
	return results, r.report(results)
}

// report writes the report, and prints its table.
func (r *runner) report(results *judge.Results) error {
	text := results.Markdown()
	fmt.Print(text)
	junit, err := results.JUnit()
	return errors.Join(err, os.MkdirAll(r.output, 0o755),
		os.WriteFile(filepath.Join(r.output, "report.md"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(r.output, "junit.xml"), junit, 0o644))
}

// chosen drops the cases that are not to be run.
func (r *runner) chosen(cases []judge.Case, results *judge.Results) []judge.Case {
	wanted := regexp.MustCompile(r.cases)
	var chosen []judge.Case
	for _, c := range cases {
		switch reason := r.settings.skipped(c.Name); {
		case !wanted.MatchString(c.Name):
		case reason != "":
			results.NotJudged(c.Level, c.Fault, reason)
		case r.clusterWide && c.Fault == "quota":
			results.NotJudged(c.Level, c.Fault, "its objects are in no namespace, or in several")
		default:
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// commandLine returns how conform was started.
func (r *runner) commandLine() string {
	return strings.Join(append([]string{program()}, r.arguments...), " ")
}

// program returns how conform was started.
func program() string {
	if name := os.Args[0]; !strings.Contains(name, "go-build") {
		return name
	}
	return "go run ./conform"
}

// repeat returns the command that runs one case again. Its report has a directory of its own.
func (r *runner) repeat(name string) string {
	words := []string{program(), fmt.Sprintf("-run '^%s$'", name), "-output " + filepath.Join(r.output, "repeated")}
	for i := 0; i < len(r.arguments); i++ {
		flagName, _, hasValue := strings.Cut(strings.Replace(r.arguments[i], "--", "-", 1), "=")
		switch {
		case i >= r.own || flagName != "-run" && flagName != "-output":
			words = append(words, r.arguments[i])
		case !hasValue:
			i++
		}
	}
	return strings.Join(words, " ")
}

func (r *runner) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
