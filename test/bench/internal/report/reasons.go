// SPDX-License-Identifier: Apache-2.0

// Why a target is missed, with the figures of the same run.

package report

import (
	"fmt"

	"example.com/sample-controller/test/bench/internal/results"
)

func reasonThroughput(r *results.Results, other string) string {
	bare := roundRatios(r.Isolated["bare"], r.Isolated[other], perSecond)
	return fmt.Sprintf("two workers have two calls under way, and most of their time is spent in the API server, whichever client makes them. "+
		"The bare loop, which only makes these calls, is %s times as fast as %s.", number(bare.Median), other)
}

func reasonEvents(r *results.Results) string {
	trials := r.Isolated[ours]
	return fmt.Sprintf("events wait until no Foo does, so a third of the writes follows convergence, again two at a time. "+
		"What else this controller does, mainly decoding its two watches, is shown [below](#where-it-goes). All events were seen in %d of %d rounds.",
		len(withEvents(trials)), len(trials))
}

func reasonBesideLimiter(r *results.Results) string {
	return fmt.Sprintf("upstream's limiter allows %s Foos/s on any machine; the bare loop reached %s on this one.",
		number(spread(r.Isolated["upstream"], perSecond).Median), number(spread(r.Isolated["bare"], perSecond).Median))
}

func reasonCPU(r *results.Results, other string) string {
	limit := roundRatios(settled(r.Isolated["bare-same-writes"]), settled(r.Isolated[other]), cpuSettled)
	return fmt.Sprintf("most of the CPU is used by three client-go calls and two watches: the bare loop with the same writes uses %s times the CPU of %s. "+
		"[Where it goes](#where-it-goes) has the parts; no part of this controller alone is large.", number(limit.Median), other)
}

// reasonStart is that of memory with few objects.
const reasonStart = "Where there are few objects, most of the memory is the program itself and what its libraries allocate at the start: " +
	"those of the metrics, which upstream's controller lacks, take 2 MiB. Go's garbage collector lets the heap grow to twice what is in use."

func reasonMemory(r *results.Results) string {
	if len(r.Profile[ours].HeapMiB) == 0 {
		return "" // unknown without a profile
	}
	inUse := 0.0
	for _, share := range r.Profile[ours].HeapMiB {
		inUse += share.Amount
	}
	return fmt.Sprintf("%s MiB are in use at the end ([below](#where-it-goes)), most of it in the caches, and there mostly for the Go types themselves: "+
		"an empty appsv1.Deployment takes 1,232 bytes, and listers return no smaller type. Go's garbage collector lets the heap grow to twice that, and the "+
		"program's own pages are added. A lower GOGC would save memory and cost CPU.", number(inUse))
}

func reasonWhole(r *results.Results, other string) string {
	all := func(name string) float64 {
		trials := r.Whole[name]
		return spread(trials, othersWrites).Median + spread(trials, func(t results.Trial) float64 { return results.Writes(t.Calls) }).Median
	}
	return fmt.Sprintf("the API server is saturated, mostly by others. With this controller it serves %s writes per Foo, %s of them from others; with %s %s. "+
		"If the rate depended on nothing but these writes, the ratio would be %s.",
		number(all(ours)), number(spread(r.Whole[ours], othersWrites).Median), other, number(all(other)), number(all(other)/all(ours)))
}

func reasonLatency(r *results.Results) string {
	load := half(r, ours)
	return fmt.Sprintf("the machine is saturated: %s Foos per second are %s writes per second, because each Foo is created and has a Deployment, a status and an event. "+
		"The client without a controller makes three of the four. In the sweep the bare loop made at most %s writes per second, with any number of goroutines.",
		number(load.PerSecond), number(4*load.PerSecond), number(2*best(r, "bare")))
}

func reasonFairness(r *results.Results) string {
	fairness := r.Fairness[ours]
	return fmt.Sprintf("the namespace is served next, but a single Foo waits for one of the two calls under way, and shares the cores with the work for the others: "+
		"its median also rises, from %s to %s ms.", number(fairness.Idle.P50), number(fairness.Busy.P50))
}
