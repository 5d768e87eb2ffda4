// SPDX-License-Identifier: Apache-2.0

// Tests of the summaries.

package profiles

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"

	"example.com/sample-controller/test/bench/internal/results"
)

// encoded returns a profile with one sample for each stack. A stack starts with the
// innermost function.
func encoded(t *testing.T, sampleType string, stacks map[int64][]string) []byte {
	t.Helper()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: sampleType, Unit: "nanoseconds"}},
	}
	for value, stack := range stacks {
		sample := &profile.Sample{Value: []int64{1, value}}
		for _, name := range stack {
			function := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			location := &profile.Location{ID: function.ID, Line: []profile.Line{{Function: function}}}
			p.Function, p.Location = append(p.Function, function), append(p.Location, location)
			sample.Location = append(sample.Location, location)
		}
		p.Sample = append(p.Sample, sample)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSampleCountsForTheFirstKindThatMatches(t *testing.T) {
	const json = "k8s.io/apimachinery/pkg/runtime/serializer/json.(*Serializer).Decode"
	got, err := CPU(encoded(t, "cpu", map[int64][]string{
		30: {"strconv.ParseInt", json, "k8s.io/client-go/rest.Result.Into", "main.(*Controller).sync"},
		20: {"crypto/tls.(*Conn).Write", "net/http.(*Client).Do", "k8s.io/client-go/rest.(*Request).Do"},
		40: {"main.decide", "main.(*Controller).sync"},
		10: {"somewhere.else"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := []results.Share{
		{What: "decisions and the queue", Amount: 40},
		{What: "decoding Foos: JSON, in responses and watches", Amount: 30},
		{What: "HTTP, TLS and their system calls", Amount: 20},
	}
	for i, share := range want {
		if got[i] != share {
			t.Errorf("share %d is %v, want %v", i, got[i], share)
		}
	}
	if last := got[len(got)-1]; last != (results.Share{What: "everything else", Amount: 10}) {
		t.Errorf("the last share is %v", last)
	}
}

func TestOtherProfilesAreRejected(t *testing.T) {
	if _, err := Heap(encoded(t, "cpu", nil)); err == nil {
		t.Error("a CPU profile was accepted as a heap profile")
	}
	if _, err := CPU([]byte("no profile")); err == nil {
		t.Error("invalid data was accepted as a profile")
	}
}
