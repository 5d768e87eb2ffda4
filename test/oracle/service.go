// SPDX-License-Identifier: Apache-2.0

// The rule that a Foo which was ready stays in service.

package oracle

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/test/footest"
)

// Interruptions waits until everything up to now is recorded, and returns a sentence for
// each time, from when a Foo first reported Ready=True until its deletion, in which none of
// the children that it controlled was in service.
func (r *Recording) Interruptions(ctx context.Context, inService func(child footest.Object) bool) ([]string, error) {
	if _, err := r.Lies(ctx); err != nil {
		return nil, err
	}
	return r.history.interruptions(inService), nil
}

func (h *History) interruptions(inService func(child footest.Object) bool) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var sentences []string
	for _, states := range h.objects {
		if footest.IsOwner(states[0].object) {
			sentences = append(sentences, h.interruptionsOf(states, inService)...)
		}
	}
	return sentences
}

// span is the time from one version until another.
type span struct {
	from, until uint64
	child       string
}

// interruptionsOf checks the states of a Foo. All must have one UID.
func (h *History) interruptionsOf(states []state, inService func(footest.Object) bool) []string {
	first := slices.IndexFunc(states, func(s state) bool { return ClaimsReady(s.object) })
	if first < 0 {
		return nil
	}
	foo, end := states[0].object, uint64(math.MaxUint64)
	if last := states[len(states)-1]; last.deleted {
		end = last.from
	}
	var sentences []string
	served := span{until: states[first].from}
	for _, next := range h.servedBy(foo, inService) {
		if next.from > served.until && served.until < end {
			sentences = append(sentences, fmt.Sprintf("Foo %s had nothing in service from version %d, when %q ended, until version %d",
				cache.MetaObjectToName(foo), served.until, served.child, next.from))
		}
		if next.until > served.until {
			served = next
		}
	}
	if served.until < end {
		sentences = append(sentences, fmt.Sprintf("Foo %s has nothing in service from version %d on", cache.MetaObjectToName(foo), served.until))
	}
	return sentences
}

// servedBy returns the times in which children that a Foo controlled were in service, by
// their beginning.
func (h *History) servedBy(foo footest.Object, inService func(footest.Object) bool) []span {
	var spans []span
	for key, states := range h.objects {
		for i, s := range states {
			if s.deleted || !metav1.IsControlledBy(s.object, foo) || !inService(s.object) {
				continue
			}
			until := uint64(math.MaxUint64)
			if i+1 < len(states) {
				until = states[i+1].from
			}
			spans = append(spans, span{s.from, until, key.name.Name})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return spans
}
