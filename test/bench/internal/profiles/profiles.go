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

// Package profiles tells in a few lines what profiles say: which share of CPU and
// memory goes where.
package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"example.com/sample-controller/test/bench/internal/results"
)

// kind is something that CPU or memory is used for. A sample is of the first kind
// that one of the functions on its stack belongs to.
type kind struct {
	what string
	// functions are parts of their names.
	functions []string
}

var cpuKinds = []kind{
	{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge"}},
	{"reading Foos: JSON, of answers and of watches", []string{"serializer/json.(*Serializer).Decode", "framer.(*jsonFrameReader)"}},
	{"reading Deployments and Events: protobuf", []string{"serializer/protobuf.(*Serializer).Decode", "serializer/protobuf.(*RawSerializer).Decode"}},
	{"writing JSON and protobuf", []string{"apimachinery/pkg/runtime.Encode", "WithVersionEncoder.Encode"}},
	{"HTTP, TLS and the system calls for it", []string{"net/http.", "golang.org/x/net/http2", "crypto/tls.", "internal/poll.", "net.(*conn)"}},
	{"client-go's requests: URLs, headers, limits, metrics", []string{"k8s.io/client-go/rest.", "k8s.io/client-go/gentype."}},
	{"client-go's informers: stores, indexes, handlers", []string{"k8s.io/client-go/tools/cache."}},
	{"events: what is told of and how often", []string{"sample-controller/internal/events", "k8s.io/client-go/tools/record"}},
	{"deciding, and the queue", []string{"main.", "k8s.io/client-go/util/workqueue", "sample-controller/internal"}},
	{"Go's scheduler", []string{"runtime.mcall", "runtime.schedule", "runtime.mstart", "runtime.sysmon"}},
}

var heapKinds = []kind{
	{"Events that wait, and what is remembered of those written", []string{"sample-controller/internal/events", "k8s.io/client-go/tools/record", "tools/reference."}},
	{"Deployments that no Foo controls: appsv1.Deployment, which is 1,232 bytes without a name", []string{"internal/plan.(*Transformer)"}},
	{"Deployments of Foos: the same, and what they hold", []string{"serializer/protobuf."}},
	{"Foos", []string{"serializer/json."}},
	{"stores and indexes of the informers", []string{"cache.(*threadSafeMap)", "cache.(*cache)", "cache.(*storeIndex)", "cache.(*RealFIFO)", "utils/buffer."}},
	{"the queue, and what is remembered of Foos", []string{"util/workqueue", "sample-controller/internal", "main.(*Controller)"}},
}

// CPU tells what a CPU profile's time goes to, in percent.
func CPU(content []byte) ([]results.Share, error) {
	return shares(content, "cpu", cpuKinds, func(value, total int64) float64 { return 100 * float64(value) / float64(total) })
}

// Heap tells what the memory in use of a heap profile is for, in MiB.
func Heap(content []byte) ([]results.Share, error) {
	return shares(content, "inuse_space", heapKinds, func(value, _ int64) float64 { return float64(value) / (1 << 20) })
}

// shares adds up a profile's samples by kind, the largest first, the rest last.
func shares(content []byte, sampleType string, kinds []kind, amount func(value, total int64) float64) ([]results.Share, error) {
	found, err := profile.ParseData(content)
	if err != nil {
		return nil, err
	}
	index, err := found.SampleIndexByName(sampleType)
	if err != nil {
		return nil, fmt.Errorf("the profile is of something else: %w", err)
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
	return append(all, results.Share{What: "all else", Amount: amount(values[rest], total)}), nil
}

func (k kind) has(sample *profile.Sample) bool {
	return slices.ContainsFunc(sample.Location, func(location *profile.Location) bool {
		return slices.ContainsFunc(location.Line, func(line profile.Line) bool {
			return slices.ContainsFunc(k.functions, func(part string) bool { return strings.Contains(line.Function.Name, part) })
		})
	})
}
