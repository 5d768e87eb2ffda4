/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package report

import (
	"fmt"

	"example.com/sample-controller/test/bench/internal/results"
)

// What binds where a target is missed, with the figures of the same run.

func bindsThroughput(r *results.Results, other string) string {
	bare := roundRatios(r.Isolated["bare"], r.Isolated[other], perSecond)
	return fmt.Sprintf("two workers have two calls under way, and the API server takes most of their time, whoever makes them. "+
		"The bare loop, which does nothing but these calls, is %s times as fast as %s.", number(bare.Median), other)
}

func bindsEvents(r *results.Results) string {
	trials := r.Isolated[ours]
	return fmt.Sprintf("an event waits until no Foo does, so that a third of the writes comes after convergence, again two at a time. "+
		"What ours does besides, reading its two watches above all, is [below](#where-it-goes). Seen to the last event in %d of %d rounds.",
		len(told(trials)), len(trials))
}

func bindsBesideLimiter(r *results.Results) string {
	return fmt.Sprintf("upstream's limiter gives it %s Foos/s on any machine; the bare loop made %s on this one.",
		number(spread(r.Isolated["upstream"], perSecond).Median), number(spread(r.Isolated["bare"], perSecond).Median))
}

func bindsCPU(r *results.Results, other string) string {
	limit := roundRatios(settled(r.Isolated["bare-same-writes"]), settled(r.Isolated[other]), cpuSettled)
	return fmt.Sprintf("three calls of client-go and two watches: the bare loop that makes the same writes takes %s of what %s takes. "+
		"[Where it goes](#where-it-goes) has the parts: none that is ours alone is large.", number(limit.Median), other)
}

func bindsMemory(r *results.Results) string {
	if len(r.Profile[ours].HeapMiB) == 0 {
		return "" // without a profile it is not known
	}
	inUse := 0.0
	for _, share := range r.Profile[ours].HeapMiB {
		inUse += share.Amount
	}
	return fmt.Sprintf("%s MiB are in use at the end ([below](#where-it-goes)), most of it the caches, and there most of it the Go types themselves: "+
		"an appsv1.Deployment is 1,232 bytes before it has a name, and listers hand out nothing smaller. The collector lets that grow to twice as much, and the "+
		"program's own pages come on top. GOGC is the lever that is left, and costs CPU.", number(inUse))
}

func bindsWhole(r *results.Results, other string) string {
	all := func(name string) float64 {
		trials := r.Whole[name]
		return spread(trials, othersWrites).Median + spread(trials, func(t results.Trial) float64 { return results.Writes(t.Calls) }).Median
	}
	return fmt.Sprintf("the API server, and who writes to it. Beside ours it takes %s writes per Foo, %s of them from others, beside %s %s: "+
		"if writes were all that it does, the ratio would be %s.",
		number(all(ours)), number(spread(r.Whole[ours], othersWrites).Median), other, number(all(other)), number(all(other)/all(ours)))
}

func bindsLatency(r *results.Results) string {
	load := half(r, ours)
	return fmt.Sprintf("the machine is full: %s Foos in a second are %s writes, for each is created itself, and has a Deployment, a status and an event. "+
		"The bare call makes three of the four. In the sweep the bare loop made %s writes in a second at most, with however many goroutines.",
		number(load.PerSecond), number(4*load.PerSecond), number(2*best(r, "bare")))
}

func bindsFairness(r *results.Results) string {
	fairness := r.Fairness[ours]
	return fmt.Sprintf("the namespace's turn is the next, but a single Foo waits for one of the two calls under way, and shares the cores with what the others' cost: "+
		"its median goes from %s to %s ms, too.", number(fairness.Idle.P50), number(fairness.Busy.P50))
}
