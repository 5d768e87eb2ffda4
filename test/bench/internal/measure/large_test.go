// SPDX-License-Identifier: Apache-2.0

// Test of the measurement of very many Foos, with few.

package measure

import (
	"context"
	"slices"
	"testing"
	"time"

	"example.com/sample-controller/test/bench/internal/program"
)

// TestLarge measures the controller beside a few Foos: it becomes ready and idle, makes no
// request at rest, and each part of the cluster is found.
func TestLarge(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testLimits)
	defer cancel()
	bench, ours := underTest(ctx, t)
	progress := 0
	found, err := bench.Large(ctx, []program.Program{ours}, LargeOptions{
		Foos: 200, Rest: 2 * time.Second, Say: func(string, ...any) { progress++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	start := found.Starts[ours.Name]
	if start.ReadySeconds == 0 || start.PassSeconds < start.ReadySeconds || start.CPUSeconds == 0 || start.PeakMiB == 0 {
		t.Errorf("the start is incomplete: %+v", start)
	}
	if len(start.Rest.Calls) > 0 {
		t.Errorf("requests at rest: %v", start.Rest.Calls)
	}
	cluster := found.Cluster
	if cluster.FileMiB == 0 || cluster.FileMiB >= cluster.QuotaMiB || cluster.Foos.MiB == 0 || cluster.Deployments.MiB == 0 {
		t.Errorf("the sizes of etcd's file and the lists: %+v", cluster)
	}
	if slices.Contains([]float64{cluster.APIServer.EmptyMiB, cluster.APIServer.FullMiB, cluster.Etcd.EmptyMiB, cluster.Etcd.FullMiB}, 0) {
		t.Errorf("the memory of the API server is %+v, that of etcd %+v", cluster.APIServer, cluster.Etcd)
	}
	if progress != 2 {
		t.Errorf("%d reports of progress, want one of the Foos and one of the program", progress)
	}
}
