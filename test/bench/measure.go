// SPDX-License-Identifier: Apache-2.0

// What a program does and uses, from its start until it rests.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/testcluster"
)

const (
	mebibyte = 1 << 20
	// convergeTimeout bounds each wait for Foos to converge.
	convergeTimeout = 10 * time.Minute
	// stopGrace is how long a program may take to end after SIGTERM.
	stopGrace = 10 * time.Second
	// idleShare is the share of a core below which a program that writes nothing counts as
	// idle, and idleInterval the time over which that is measured.
	idleShare    = 0.05
	idleInterval = time.Second
)

// program is a controller, or the bare client: it takes -kubeconfig and runs until it is stopped.
type program struct {
	name, path string
	args       []string
	// env is added to the benchmark's own environment, as NAME=value.
	env []string
	// namespace is the only one that it watches; "" means all.
	namespace string
	// memory is how many bytes per object beside it the program may use, by GOMEMLIMIT; 0 means any number.
	memory int
	// alongside runs at the same time, if it is set.
	alongside *program
}

// process is a running program.
type process struct {
	*testcluster.Program
	started time.Time
}

// start starts a program in the session's cluster.
func (s *session) start(p program) (*process, error) {
	args := append([]string{"-kubeconfig", s.kubeconfig()}, p.args...)
	if p.namespace != "" {
		args = append(args, "-namespace", p.namespace)
	}
	// Without a context, because stop sends SIGTERM first.
	command := exec.Command(p.path, args...)
	command.Env = append(os.Environ(), p.env...)
	began := time.Now()
	started, err := testcluster.StartProgram(p.name, s.path(p.name+".log"), command)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, &process{Program: started, started: began})
	return s.started[len(s.started)-1], nil
}

// stop stops the program with SIGTERM, then with SIGKILL.
func (p *process) stop() { p.Stop(stopGrace) }

// pause waits for some time, unless ctx or the program ends.
func (p *process) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-p.Ended():
		return p.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// usage is the use of CPU and memory since the start of a process.
type usage struct {
	// cpu is milliseconds of user and system time, in steps of 10.
	cpu float64
	// peak and resident are MiB of resident memory: the maximum so far, and now.
	peak, resident float64
}

func (p *process) usage() (usage, error) {
	if err := p.Err(); err != nil {
		return usage{}, err
	}
	proc, errProc := procfs.NewProc(p.ID())
	stat, errStat := proc.Stat()
	status, errStatus := proc.NewStatus()
	if err := errors.Join(errProc, errStat, errStatus); err != nil {
		return usage{}, fmt.Errorf("reading CPU and memory of %s: %w", p.Name, err)
	}
	return usage{cpu: stat.CPUTime() * 1000, peak: float64(status.VmHWM) / mebibyte, resident: float64(status.VmRSS) / mebibyte}, nil
}

// errLate is the cause of the end of a wait for Foos to converge.
var errLate = errors.New("not within the limit")

// converge starts a program and waits until Foos have converged, or returns errLate after a
// limit. The times are since its start, in ascending order, and the requests those that it has
// made.
func (s *session) converge(
	ctx context.Context, p program, limit time.Duration, waiting ...*samplev1alpha1.Foo,
) (running *process, made *requests, times []time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	if made, err = s.record(p.namespace); err != nil {
		return nil, nil, nil, err
	}
	if running, err = s.start(p); err != nil {
		return nil, nil, nil, err
	}
	converged, err := made.converged(ctx, running, waiting)
	if err != nil {
		return running, made, nil, err
	}
	for _, at := range converged {
		times = append(times, at.Sub(running.started))
	}
	slices.Sort(times)
	return running, made, times, nil
}

// options describe what to measure.
type options struct {
	// limit bounds the wait for the convergence of all Foos. It is no error to reach it: upstream's
	// syncs the Foo that shows full caches in its turn. 0 means convergeTimeout, which is one.
	limit time.Duration
	// idle bounds the wait for an idle program. Some never stop writing.
	idle time.Duration
	// rest is how long CPU and calls are still counted after the program is idle.
	rest time.Duration
}

// beside measures a program that starts beside objects that need nothing, and a Foo that
// waits: when that one has converged, the caches are full. Without objects there is no such
// Foo.
func (s *session) beside(ctx context.Context, p program, objects int, o options) (figures, error) {
	if objects == 0 {
		return s.measure(ctx, p, o)
	}
	s.probes++
	probe, err := s.createFoo(ctx, cmp.Or(p.namespace, quietNamespace), -s.probes)
	if err != nil {
		return nil, err
	}
	if p.memory > 0 {
		p.env = append(slices.Clone(p.env), fmt.Sprintf("GOMEMLIMIT=%d", objects*p.memory))
	}
	if p.alongside != nil {
		other, err := s.start(*p.alongside)
		if err != nil {
			return nil, err
		}
		defer other.stop()
	}
	return s.measure(ctx, p, o, probe)
}

// measure measures a program from its start until it rests, and stops it.
func (s *session) measure(ctx context.Context, p program, o options, waiting ...*samplev1alpha1.Foo) (figures, error) {
	running, made, times, err := s.converge(ctx, p, cmp.Or(o.limit, convergeTimeout), waiting...)
	isLate := o.limit > 0 && errors.Is(err, errLate)
	if err != nil && !isLate {
		return nil, err
	}
	defer running.stop()
	converged, err := running.usage()
	if err != nil {
		return nil, err
	}
	each := max(1, float64(len(waiting)))
	found := figures{fooCount: float64(len(waiting)), cpuConverged: converged.cpu / each}
	if !isLate {
		if err := awaitEvents(ctx, running, made, o.idle, each, found); err != nil {
			return nil, err
		}
		if err := awaitIdle(ctx, running, made, o.idle, each, found); err != nil {
			return nil, err
		}
	}
	if n := len(times); n > 0 {
		found[half], found[last] = times[(n-1)/2].Seconds(), times[n-1].Seconds()
		found[perSecond] = float64(n) / times[n-1].Seconds()
	}
	if o.rest > 0 {
		if err := s.atRest(ctx, running, o.rest, found); err != nil {
			return nil, err
		}
	}
	if _, err := made.next(); err != nil {
		return nil, err
	}
	made.tell(found, each)
	used, err := running.usage()
	found[peakMiB], found[residentMiB] = used.peak, used.resident
	if o.rest > 0 {
		found[cpuRested] = used.cpu / each
	}
	return found, err
}

// awaitEvents waits until there are as many Events as Foos that waited, and notes the CPU until then, unless
// there are fewer within a limit.
func awaitEvents(ctx context.Context, running *process, made *requests, limit time.Duration, each float64, found figures) error {
	for end := time.Now().Add(limit); made.events() < found[fooCount]; {
		if time.Now().After(end) {
			return nil
		}
		if err := running.pause(ctx, readInterval); err != nil {
			return err
		}
		if _, err := made.next(); err != nil {
			return err
		}
	}
	used, err := running.usage()
	found[cpuEvents] = used.cpu / each
	return err
}

// awaitIdle waits until a program writes nothing and uses almost no CPU, and notes since
// when that is so, unless it is not within a limit.
func awaitIdle(ctx context.Context, running *process, made *requests, limit time.Duration, each float64, found figures) error {
	if _, err := made.next(); err != nil {
		return err
	}
	used, err := running.usage()
	if err != nil {
		return err
	}
	for end := time.Now().Add(limit); time.Now().Before(end); {
		before, began := used.cpu, time.Now()
		if err := running.pause(ctx, idleInterval); err != nil {
			return err
		}
		if used, err = running.usage(); err != nil {
			return err
		}
		written, err := made.next()
		if err != nil {
			return err
		}
		if len(written) == 0 && used.cpu-before < idleShare*idleInterval.Seconds()*1000 {
			found[idle], found[cpuIdle] = began.Sub(running.started).Seconds(), used.cpu/each
			return nil
		}
	}
	return nil
}

// atRest notes what a program requests and uses in a time in which no object changes.
func (s *session) atRest(ctx context.Context, running *process, duration time.Duration, found figures) error {
	before, err := running.usage()
	if err != nil {
		return err
	}
	calls, err := s.dispatched(ctx)
	if err != nil {
		return err
	}
	if err := running.pause(ctx, duration); err != nil {
		return err
	}
	after, err := running.usage()
	if err != nil {
		return err
	}
	callsAfter, err := s.dispatched(ctx)
	found[restCalls], found[restCPU] = callsAfter-calls, after.cpu-before.cpu
	return err
}
