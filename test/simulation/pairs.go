// SPDX-License-Identifier: Apache-2.0

// Pairs of faults in one run: which there are, and which of them are run.

package simulation

import (
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/sample-controller/test/footest"
)

// shortWorkload is how many times as many pairs as are to be run a workload may have, so
// that all of them are run.
const shortWorkload = 25

var pairsFlag = flag.String("simulation.pairs", "100", fmt.Sprintf(
	"About how `many` pairs of faults to run of each workload, or all. Of a workload that has at most %d times as many, all are run.", shortWorkload))

// injection is a fault at an injection point.
type injection struct {
	point injectionPoint
	fault fault
}

// String returns the name of its test.
func (i injection) String() string { return i.point.String() + "/" + i.fault.name }

// injectionsAt returns each fault that can happen at each of the points.
func injectionsAt(owner *footest.OwnerRow, points []injectionPoint) []injection {
	var all []injection
	for _, point := range points {
		for _, fault := range faultsAt(owner, point) {
			all = append(all, injection{point, fault})
		}
	}
	return all
}

// secondsAfter returns each fault that can happen after a first one, at the points of a run
// with the first alone.
func secondsAfter(owner *footest.OwnerRow, first injection, points []injectionPoint) []injection {
	return injectionsAt(owner, points[slices.Index(points, first.point)+1:])
}

// pairs chooses the pairs of faults that are run, and counts them.
type pairs struct {
	// perWorkload is about how many to run of each workload; 0 means all.
	perWorkload int
	// named is true if the command line names a pair.
	named bool
	// complete holds the workloads all of whose pairs are run.
	complete []string
	// found counts the pairs that begin with a fault that was run alone, ran those that
	// were run, and missed those of them in which the second point was not reached.
	found, ran, missed atomic.Int64
}

// newPairs reads the command line.
func newPairs(t *testing.T) *pairs {
	t.Helper()
	p := &pairs{named: strings.Count(flag.Lookup("test.run").Value.String(), "/") >= 4}
	many, err := strconv.Atoi(*pairsFlag)
	if *pairsFlag != "all" && (err != nil || many < 1) {
		t.Fatalf("-simulation.pairs=%s is neither a number of pairs nor \"all\"", *pairsFlag)
	}
	p.perWorkload = many
	return p
}

// sample holds the pairs of one workload that are run.
type sample struct {
	*pairs
	workload
	baseline

	owner *footest.OwnerRow
	start Start
	// every is n if one pair in n is run.
	every int
}

// sampleOf returns the sample of a workload. Its size follows from the pairs that a second
// fault could make with the points of the run without faults. There are some more, because
// a fault adds points.
func (p *pairs) sampleOf(w workload, b baseline, owner *footest.OwnerRow, start Start) *sample {
	s := &sample{pairs: p, workload: w, baseline: b, owner: owner, start: start, every: 1}
	expected, later := 0, 0
	for _, point := range slices.Backward(b.points) {
		faults := len(faultsAt(owner, point))
		expected += faults * later
		later += faults
	}
	switch {
	case p.named:
	case p.perWorkload == 0, expected <= shortWorkload*p.perWorkload:
		p.complete = append(p.complete, w.name)
	default:
		s.every = expected / p.perWorkload
	}
	return s
}

// of returns the pairs of the sample that begin with a fault: every n-th of those that there
// are. Where it begins depends on nothing but names, so that it is the same in each run.
func (s *sample) of(first injection, seconds []injection) []injection {
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s/%s", s.name, first)
	var chosen []injection
	for i := int(hash.Sum32() % uint32(s.every)); i < len(seconds); i += s.every {
		chosen = append(chosen, seconds[i])
	}
	return chosen
}

// runAfter runs the pairs that begin with a fault. points are those of the run with it alone.
func (s *sample) runAfter(t *testing.T, first injection, points []injectionPoint) {
	seconds := secondsAfter(s.owner, first, points)
	s.found.Add(int64(len(seconds)))
	for _, second := range s.of(first, seconds) {
		t.Run(second.String(), func(t *testing.T) {
			s.ran.Add(1)
			c := s.runWithFaults(t, s.owner, s.start, s.baseline, first, second)
			c.report(t)
			if !slices.Contains(c.points, second.point) {
				s.missed.Add(1)
				t.Skipf("%s was not reached", second.point)
			}
		})
	}
}

// report prints what was run. It fails the test if many pairs tested nothing: client-go
// waits for a random time before some retries, but the other times are the same in each run.
func (p *pairs) report(t *testing.T) {
	t.Helper()
	complete := "none"
	if len(p.complete) > 0 && sampling() == 1 {
		complete = strings.Join(p.complete, ", ")
	}
	found, ran, missed := p.found.Load(), p.ran.Load(), p.missed.Load()
	fmt.Printf("simulation: %d pairs of faults; %d were run; complete workloads: %s; %d ended before the second fault\n", found, ran, complete, missed)
	if missed > 10+ran/100 {
		t.Errorf("%d of %d pairs ended before the second fault: the runs with the first do not repeat", missed, ran)
	}
}
