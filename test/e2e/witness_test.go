// SPDX-License-Identifier: Apache-2.0

// The witness: while a test runs, what its Foos report must be true.

package e2e

import (
	"context"
	"sync"
	"testing"

	"example.com/sample-controller/test/oracle"
)

// witness records what the namespace's Foos report, until the test ends or stop is
// called, and fails the test if any report was false. A test that removes the CRD must
// call stop first, because that would leave a gap in the record.
func (ns *namespace) witness(t *testing.T) (stop func()) {
	t.Helper()
	recording, err := oracle.Record(cluster.ctx, ns.in.kube, ns.in.foos, ns.name)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		defer recording.Stop()
		// The context of a test has ended when its cleanup runs.
		ctx, cancel := context.WithTimeout(cluster.ctx, cluster.patience())
		defer cancel()
		lies, err := recording.Lies(ctx)
		if err != nil {
			t.Errorf("The record of the Foos in %s is incomplete: %v", ns.name, err)
		}
		for _, lie := range lies {
			t.Errorf("False report: %s", lie)
		}
	})
	t.Cleanup(stop)
	return stop
}
