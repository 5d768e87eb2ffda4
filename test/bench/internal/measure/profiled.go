// SPDX-License-Identifier: Apache-2.0

// Profiles: what the CPU time and the memory of a program are used for.

package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/sample-controller/test/bench/internal/fixtures"
	"example.com/sample-controller/test/bench/internal/profiles"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
)

// Profile writes profiles of a program that has this controller's flags, and of the API
// server, into a folder, while Foos converge beside settled ones. It returns a summary of
// the program's profiles. Nothing else is measured meanwhile, because profiling takes
// CPU.
func (b *Bench) Profile(ctx context.Context, p program.Program, folder string, settled, waiting, foreign int) (found results.Profile, err error) {
	err = b.in(ctx, false, func(s *session) error {
		if err := fixtures.ForeignDeployments(ctx, s.Cluster, 0, foreign); err != nil {
			return err
		}
		if err := fixtures.SettledFoos(ctx, s.Cluster, 0, settled); err != nil {
			return err
		}
		foos, err := fixtures.WaitingFoos(ctx, s.Cluster, fixtures.Namespace, settled, waiting)
		if err != nil {
			return err
		}
		p, profiler, err := s.profiler(p, folder)
		if err != nil {
			return err
		}
		done := profiler.cpu(ctx)
		running, _, err := s.converge(ctx, p, foos)
		if err != nil {
			return errors.Join(err, done())
		}
		defer running.Stop()
		if err := errors.Join(done(), profiler.heap(ctx)); err != nil {
			return err
		}
		found, err = summary(folder, p.Name)
		found.Settled, found.Waiting, found.Foreign, found.Seconds = settled, waiting, foreign, profileSeconds
		return err
	})
	if err != nil {
		return found, fmt.Errorf("profiling %s: %w", p.Name, err)
	}
	return found, nil
}

// summary summarizes the profiles of a program in a folder.
func summary(folder, name string) (found results.Profile, err error) {
	cpu, errCPU := os.ReadFile(filepath.Join(folder, name+cpuSuffix))
	heap, errHeap := os.ReadFile(filepath.Join(folder, name+heapSuffix))
	if err := errors.Join(errCPU, errHeap); err != nil {
		return found, err
	}
	found.CPUPercent, errCPU = profiles.CPU(cpu)
	found.HeapMiB, errHeap = profiles.Heap(heap)
	return found, errors.Join(errCPU, errHeap)
}
