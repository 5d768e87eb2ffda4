// SPDX-License-Identifier: Apache-2.0

// Package profiles summarizes profiles: which share of CPU and memory is used for what.
package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"example.com/sample-controller/test/bench/internal/results"
)

// kind is a use of CPU or memory. A sample counts for the first kind that matches a
// function on its stack.
type kind struct {
	what string
	// functions are substrings of function names.
	functions []string
}

var cpuKinds = []kind{
	{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge"}},
	{"decoding Foos: JSON, in responses and watches", []string{"serializer/json.(*Serializer).Decode", "framer.(*jsonFrameReader)"}},
	{"decoding Deployments and Events: protobuf", []string{"serializer/protobuf.(*Serializer).Decode", "serializer/protobuf.(*RawSerializer).Decode"}},
	{"encoding JSON and protobuf", []string{"apimachinery/pkg/runtime.Encode", "WithVersionEncoder.Encode"}},
	{"HTTP, TLS and their system calls", []string{"net/http.", "golang.org/x/net/http2", "crypto/tls.", "internal/poll.", "net.(*conn)"}},
	{"client-go's requests: URLs, headers, limits, metrics", []string{"k8s.io/client-go/rest.", "k8s.io/client-go/gentype."}},
	{"client-go's informers: stores, indexes, handlers", []string{"k8s.io/client-go/tools/cache."}},
	{"events: recording and rate limits", []string{"sample-controller/internal/events", "k8s.io/client-go/tools/record"}},
	{"decisions and the queue", []string{"main.", "k8s.io/client-go/util/workqueue", "sample-controller/internal"}},
	{"Go's scheduler", []string{"runtime.mcall", "runtime.schedule", "runtime.mstart", "runtime.sysmon"}},
}

var heapKinds = []kind{
	{"Events that wait to be written, and the record of those written", []string{"sample-controller/internal/events", "k8s.io/client-go/tools/record", "tools/reference."}},
	{"Deployments that no Foo controls: appsv1.Deployment, which takes 1,232 bytes when empty", []string{"internal/plan.(*Child[...]).Transform"}},
	{"Deployments of Foos: the same, and their contents", []string{"serializer/protobuf."}},
	{"Foos", []string{"serializer/json."}},
	{"stores and indexes of the informers", []string{"cache.(*threadSafeMap)", "cache.(*cache)", "cache.(*storeIndex)", "cache.(*RealFIFO)", "utils/buffer."}},
	{"the queue, and what the controller remembers of Foos", []string{"util/workqueue", "sample-controller/internal", "main.(*Controller)"}},
}

// CPU returns what the time in a CPU profile was used for, in percent.
func CPU(content []byte) ([]results.Share, error) {
	return shares(content, "cpu", cpuKinds, func(value, total int64) float64 { return 100 * float64(value) / float64(total) })
}

// Heap returns what the memory in use in a heap profile is used for, in MiB.
func Heap(content []byte) ([]results.Share, error) {
	return shares(content, "inuse_space", heapKinds, func(value, _ int64) float64 { return float64(value) / (1 << 20) })
}

// shares adds up the samples of a profile by kind, the largest first and the rest last.
func shares(content []byte, sampleType string, kinds []kind, amount func(value, total int64) float64) ([]results.Share, error) {
	found, err := profile.ParseData(content)
	if err != nil {
		return nil, err
	}
	index, err := found.SampleIndexByName(sampleType)
	if err != nil {
		return nil, fmt.Errorf("the profile has another type: %w", err)
	}
	rest := len(kinds)
	values := make([]int64, rest+1)
	var total int64
	for _, sample := range found.Sample {
		number := slices.IndexFunc(kinds, func(k kind) bool { return k.has(sample) })
		if number < 0 {
			number = rest
		}
		values[number] += sample.Value[index]
		total += sample.Value[index]
	}
	var all []results.Share
	for i, k := range kinds {
		all = append(all, results.Share{What: k.what, Amount: amount(values[i], total)})
	}
	slices.SortStableFunc(all, func(a, b results.Share) int { return cmp.Compare(b.Amount, a.Amount) })
	return append(all, results.Share{What: "everything else", Amount: amount(values[rest], total)}), nil
}

func (k kind) has(sample *profile.Sample) bool {
	return slices.ContainsFunc(sample.Location, func(location *profile.Location) bool {
		return slices.ContainsFunc(location.Line, func(line profile.Line) bool {
			return slices.ContainsFunc(k.functions, func(part string) bool { return strings.Contains(line.Function.Name, part) })
		})
	})
}
