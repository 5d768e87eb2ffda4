// SPDX-License-Identifier: Apache-2.0

// Large: what very many settled Foos cost a program, the API server and etcd.

package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/sample-controller/internal/audit"
	"example.com/sample-controller/test/bench/internal/devcluster"
	"example.com/sample-controller/test/bench/internal/fixtures"
	"example.com/sample-controller/test/bench/internal/process"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
)

const (
	// largeStep is how many Foos are created between two reports of progress.
	largeStep = 10000
	// startLimit bounds the wait until a program with very many Foos has made a new one
	// converge, and passLimit the wait after that until it is idle. Upstream's is busy for
	// longer than that.
	startLimit, passLimit = 2 * time.Minute, 2 * time.Minute
	// passInterval is the interval without work that ends the first pass over all Foos. It is
	// also the resolution of the time of that pass.
	passInterval = time.Second
)

// LargeOptions describe a measurement of very many Foos.
type LargeOptions struct {
	// Foos are settled when a program starts.
	Foos int
	// Rest is how long CPU and calls are counted when the program is idle: a multiple of the
	// period of the resync.
	Rest time.Duration
	// Say reports progress.
	Say func(format string, args ...any)
}

// Large measures programs that start beside very many settled Foos, one after the other, and
// the API server and etcd that hold the Foos.
func (b *Bench) Large(ctx context.Context, programs []program.Program, options LargeOptions) (found results.Large, err error) {
	found = results.Large{Foos: options.Foos, Starts: map[string]results.Start{}}
	err = b.in(ctx, false, func(s *session) error {
		if err := s.fill(ctx, options, &found.Cluster); err != nil {
			return err
		}
		for i, p := range programs {
			foos := options.Foos + i // those before have left one each
			options.Say("    %s starts beside %d settled Foos", p.Name, foos)
			start, err := s.largeStart(ctx, p, foos, options.Rest)
			if err != nil {
				return err
			}
			found.Starts[p.Name] = start
		}
		return s.largeUsage(ctx, &found.Cluster)
	})
	if err != nil {
		return found, fmt.Errorf("%d settled Foos: %w", options.Foos, err)
	}
	return found, nil
}

// fill creates the settled Foos, and says what they cost the API server and etcd.
func (s *session) fill(ctx context.Context, options LargeOptions, cluster *results.LargeCluster) error {
	if err := s.largeUsage(ctx, cluster); err != nil {
		return err
	}
	cluster.APIServer.EmptyMiB, cluster.Etcd.EmptyMiB = cluster.APIServer.FullMiB, cluster.Etcd.FullMiB
	began := time.Now()
	for there := 0; there < options.Foos; {
		n := min(largeStep, options.Foos-there)
		if err := fixtures.SettledFoos(ctx, s.Cluster, there, n); err != nil {
			return err
		}
		there += n
		if err := s.largeUsage(ctx, cluster); err != nil {
			return err
		}
		options.Say("    %d of %d settled Foos after %v; the API server has %.0f MiB, etcd %.0f MiB and a file of %.0f of %.0f MiB", there, options.Foos,
			time.Since(began).Round(time.Second), cluster.APIServer.FullMiB, cluster.Etcd.FullMiB, cluster.FileMiB, cluster.QuotaMiB)
	}
	lists, err := s.ListAll(ctx)
	if err != nil {
		return err
	}
	cluster.Foos, cluster.Deployments = listed(lists.Foos), listed(lists.Deployments)
	return nil
}

func listed(list devcluster.List) results.List {
	return results.List{MiB: float64(list.Bytes) / mebibyte, Seconds: list.Took.Seconds()}
}

// largeUsage reads the memory of the API server and of etcd. If the lists have been read, all
// objects are there, and only the maximum changes.
func (s *session) largeUsage(ctx context.Context, cluster *results.LargeCluster) error {
	for name, of := range map[string]*results.Component{"kube-apiserver": &cluster.APIServer, "etcd": &cluster.Etcd} {
		pid, err := s.ComponentPID(name)
		if err != nil {
			return err
		}
		usage, err := process.UsageOf(pid)
		if err != nil {
			return fmt.Errorf("reading the memory of %s: %w", name, err)
		}
		of.PeakMiB = float64(usage.Peak) / mebibyte
		if cluster.Foos.MiB == 0 {
			of.FullMiB = float64(usage.Resident) / mebibyte
		}
	}
	file, quota, err := s.EtcdSize(ctx)
	cluster.FileMiB, cluster.QuotaMiB = float64(file)/mebibyte, float64(quota)/mebibyte
	return err
}

// largeStart starts a program when all Foos are settled but one.
func (s *session) largeStart(ctx context.Context, p program.Program, foos int, atRest time.Duration) (start results.Start, err error) {
	running, seconds, err := s.startReady(ctx, p, startLimit)
	if err != nil {
		return start, err
	}
	defer running.Stop()
	start.ReadySeconds = seconds
	if start.ReadySeconds > 0 {
		passed, usage, err := s.pass(ctx, running)
		if err != nil {
			return start, err
		}
		if !passed.IsZero() {
			start.PassSeconds, start.CPUSeconds = passed.Sub(running.Started).Seconds(), usage.CPU.Seconds()
		}
	}
	resting, err := s.beginRest(ctx, running)
	if err != nil {
		return start, err
	}
	rest, err := resting.end(ctx, running, atRest)
	if err != nil {
		return start, err
	}
	start.Rest = *rest
	usage, err := running.Usage()
	start.Holding = results.Holding{Objects: foos, PeakMiB: float64(usage.Peak) / mebibyte, ResidentMiB: float64(usage.Resident) / mebibyte}
	return start, err
}

// pass waits until a program uses almost no CPU and writes nothing, which is when it has
// synced each Foo once. It returns the time since when that is so, or the zero time if it is
// not so within passLimit.
func (s *session) pass(ctx context.Context, running *process.Process) (since time.Time, usage process.Usage, err error) {
	log, err := audit.OpenAtEnd(s.AuditLog())
	if err != nil {
		return since, usage, err
	}
	before, err := running.Usage()
	for end := time.Now().Add(passLimit); err == nil && time.Now().Before(end); before = usage {
		began := time.Now()
		if err := pause(ctx, passInterval, running); err != nil {
			return since, usage, err
		}
		if usage, err = running.Usage(); err != nil {
			return since, usage, err
		}
		writes, err := log.Next()
		if err != nil {
			return since, usage, err
		}
		wrote := slices.ContainsFunc(writes, func(write audit.Write) bool { return write.User == devcluster.User })
		if used := usage.CPU - before.CPU; !wrote && float64(used) < idleShare*float64(passInterval) {
			return began, usage, nil
		}
	}
	return since, usage, err
}
