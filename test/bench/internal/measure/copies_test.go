// SPDX-License-Identifier: Apache-2.0

// Tests that objects copied within etcd are like objects created through the API.

package measure

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/bench/internal/fixtures"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
)

const (
	copies = 300
	// copiesRest spans several resyncs.
	copiesRest = 3 * time.Second
)

// TestCopies checks that objects copied within etcd work like those created through the API:
// lists have them all, settled ones cause no write, and waiting ones converge.
func TestCopies(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testLimits)
	defer cancel()
	bench, ours := underTest(ctx, t)
	err := bench.in(ctx, false, func(s *session) error {
		// In two steps, as the measurement of memory does, and with a last transaction
		// that is not full.
		const first = 280
		err := errors.Join(s.add(ctx, 0, first, false), s.add(ctx, 0, first, true),
			s.add(ctx, first, copies-first, false), s.add(ctx, first, copies-first, true))
		if err != nil {
			return err
		}
		c := clusterWithCopies{s}
		t.Run("lists", c.lists)
		counter, err := s.counter(ctx)
		if err != nil {
			return err
		}
		found, err := s.restart(ctx, ours.With("ours", resync), counter, TrialOptions{Foos: copies, Restart: copiesRest})
		if err != nil {
			return err
		}
		if results.Writes(found.Calls) > 0 {
			t.Errorf("requests of a controller that starts with the copies: %v, want no writes", found.Calls)
		}
		t.Run("waiting", func(t *testing.T) { c.waiting(t, ours) })
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// clusterWithCopies is a cluster with copied objects.
type clusterWithCopies struct{ *session }

// lists checks that lists from the API server's cache and from etcd have all objects,
// each with a UID of its own.
func (c clusterWithCopies) lists(t *testing.T) {
	for _, options := range []metav1.ListOptions{{ResourceVersion: "0"}, {}} {
		foos, err := c.Foos.SamplecontrollerV1alpha1().Foos("").List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		deployments, err := c.Kube.AppsV1().Deployments("").List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		uids := map[string]bool{}
		for i := range foos.Items {
			uids[string(foos.Items[i].UID)] = true
		}
		for i := range deployments.Items {
			uids[string(deployments.Items[i].UID)] = true
		}
		if n, m := len(foos.Items), len(deployments.Items); n != copies || m != 2*copies || len(uids) != n+m {
			t.Errorf("resourceVersion %q: %d Foos and %d Deployments with %d UIDs, want %d, %d, and as many UIDs",
				options.ResourceVersion, n, m, len(uids), copies, 2*copies)
		}
	}
}

// waiting checks that the controller makes copied Foos without a status converge.
func (c clusterWithCopies) waiting(t *testing.T, ours program.Program) {
	const first, n = 1000, 2*50 + 2 // two full transactions between the first and the last
	waiting, err := fixtures.WaitingFoos(t.Context(), c.Cluster, fixtures.Namespace, first, n)
	if err != nil {
		t.Fatal(err)
	}
	running, times, err := c.converge(t.Context(), ours, waiting)
	if err != nil {
		t.Fatal(err)
	}
	running.Stop()
	if len(times) != n {
		t.Errorf("%d Foos have converged, want %d", len(times), n)
	}
}
