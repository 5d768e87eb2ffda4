// SPDX-License-Identifier: Apache-2.0

// Rows A1 to A3 and D2: faults of a single write.

package faults

import (
	"context"
	"fmt"

	"example.com/sample-controller/test/faults/proxy"
)

// crashes are A1: the controller is killed before or after a write.
func crashes() []breakage {
	return []breakage{
		{"crash before", func(r *replica) (proxy.Fault, func()) { return proxy.Before("crash", r.process.crash), nil }},
		{"crash after", func(r *replica) (proxy.Fault, func()) { return proxy.After("crash", r.process.crash), nil }},
	}
}

// lostReplies are A2: a write is done, and its reply is lost.
func lostReplies() []breakage {
	return []breakage{{"reply lost", always(proxy.LoseReply)}}
}

// lateWrites are A3: a write is done long after the controller has repeated it.
func lateWrites() []breakage {
	return []breakage{{"delayed", func(*replica) (proxy.Fault, func()) {
		begin := make(chan struct{})
		return proxy.CutAndLater(begin), func() { close(begin) }
	}}}
}

// refusals are D1 to D3, for a single write.
func refusals() []breakage {
	return []breakage{
		{"409", always(proxy.Conflict)},
		{"429", always(proxy.TooMany)},
		{"500", always(proxy.Internal)},
		{"503", always(proxy.Unavailable)},
		{"401", always(proxy.Unauthorized)},
		{"reset", always(proxy.Cut)},
	}
}

func always(fault proxy.Fault) func(*replica) (proxy.Fault, func()) {
	return func(*replica) (proxy.Fault, func()) { return fault, nil }
}

// eachWrite makes a case of each write of each workload with each breakage.
func eachWrite(breakages func() []breakage) func(writeCounts) []trialCase {
	return func(writes writeCounts) []trialCase {
		var cases []trialCase
		for _, w := range passing(writes) {
			for write := 1; write <= writes[w.name]; write++ {
				for _, b := range breakages() {
					cases = append(cases, trialCase{
						name: fmt.Sprintf("%s, write %d, %s", w.name, write, b.name),
						run:  func(ctx context.Context, tr *trial) error { return w.runBroken(ctx, tr, b, write) },
					})
				}
			}
		}
		return cases
	}
}
