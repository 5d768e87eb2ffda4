// SPDX-License-Identifier: Apache-2.0

// The setup of a run: its options, the cluster, and the controllers that are built for
// it.

package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

const (
	// parallel is how many trials run at once. They spend most of their time waiting.
	parallel = "12"
	// waitTimeout bounds each wait for something that must happen. It is no measure of
	// speed: the machine may be slow.
	waitTimeout = 90 * time.Second
	// rolloutTimeout bounds how much longer the cluster's own controllers may take to
	// roll out a Deployment that is already as requested.
	rolloutTimeout = 10 * time.Minute
)

// testRun holds what the trials of a run share.
type testRun struct {
	cluster *testCluster
	// folder holds programs and kubeconfigs. It is removed at the end.
	folder string
	ours   *subject
	// upstream is nil unless the run compares two controllers.
	upstream *subject
	// all is true if every case is run, and not a selection.
	all bool
	// seed determines the selection.
	seed   uint64
	report *report
}

var run testRun

func TestMain(m *testing.M) {
	flag.Parse()
	if reason := skipReason(); reason != "" {
		fmt.Println("faults: all tests skipped: " + reason)
		return
	}
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "faults: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func skipReason() string {
	switch {
	case os.Getenv("FAULTS") != "quick" && os.Getenv("FAULTS") != "all":
		return "FAULTS is neither quick nor all; use make faults or make test-faults"
	case os.Getenv("KUBECONFIG") == "" || os.Getenv("DEVCLUSTER_BIN") == "":
		return "KUBECONFIG or DEVCLUSTER_BIN is not set"
	}
	return ""
}

func runTests(m *testing.M) (code int, err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	run.all = os.Getenv("FAULTS") == "all"
	if run.seed, err = chooseSeed(os.Getenv("FAULTS_SEED")); err != nil {
		return 1, err
	}
	fmt.Printf("faults: seed %d\n", run.seed)
	if run.folder, err = os.MkdirTemp("", "foo-faults-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(run.folder)
	if run.cluster, err = prepare(ctx, os.Getenv("KUBECONFIG")); err != nil {
		return 1, err
	}
	if run.ours, err = buildOurs(ctx, filepath.Join(run.folder, "ours")); err != nil {
		return 1, err
	}
	output := os.Getenv("FAULTS_REPORT")
	if output != "" {
		if run.upstream, err = buildUpstream(ctx, run.folder); err != nil {
			return 1, err
		}
	}
	run.report = newReport()
	if !isSet("test.parallel") {
		if err := flag.Set("test.parallel", parallel); err != nil {
			return 1, err
		}
	}
	code = m.Run()
	fmt.Println("faults: " + run.report.summary())
	if output != "" {
		err = writeReport(output)
	}
	return code, errors.Join(err, ctx.Err())
}

// chooseSeed returns the requested seed, or a random one.
func chooseSeed(asked string) (uint64, error) {
	if asked == "" {
		return uint64(rand.Uint32()), nil
	}
	seed, err := strconv.ParseUint(asked, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("FAULTS_SEED: %w", err)
	}
	return seed, nil
}

func isSet(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

func writeReport(path string) error {
	version, err := run.cluster.kube.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	return run.report.write(path, version.GitVersion)
}
