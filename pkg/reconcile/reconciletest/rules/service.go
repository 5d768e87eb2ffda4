// SPDX-License-Identifier: Apache-2.0

// The service of an owner that was ready, and how soon it says that it is not.

package rules

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// Interruptions returns a sentence for each time, from when an owner first reported Ready=True until
// its deletion, in which none of the children that it controlled was in service.
func (h *History) Interruptions(inService func(child rows.Object) bool) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var sentences []string
	for _, states := range h.objects {
		if h.Owner.Is(states[0].object) {
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

// interruptionsOf checks the states of an owner. All must have one UID.
func (h *History) interruptionsOf(states []state, inService func(rows.Object) bool) []string {
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
			sentences = append(sentences, fmt.Sprintf("%s %s had nothing in service from version %d, when %q ended, until version %d",
				h.Owner, cache.MetaObjectToName(foo), served.until, served.child, next.from))
		}
		if next.until > served.until {
			served = next
		}
	}
	if served.until < end {
		sentences = append(sentences, fmt.Sprintf("%s %s has nothing in service from version %d on", h.Owner, cache.MetaObjectToName(foo), served.until))
	}
	return sentences
}

// servedBy returns the times in which children that an owner controlled were in service, by
// their beginning.
func (h *History) servedBy(foo rows.Object, inService func(rows.Object) bool) []span {
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

// Delayed returns a sentence for each time, longer than it may take to notice, in which an owner reported Ready
// although a child that it asks for was not. at returns the time of a version.
func (h *History) Delayed(at func(version uint64) time.Time, patience time.Duration) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var sentences []string
	for claim := range h.claims() {
		for _, kind := range h.Owner.Kinds {
			for _, name := range kind.Names(claim.object) {
				child := objectKey{kind, cache.ObjectName{Namespace: claim.object.GetNamespace(), Name: name}}
				for _, lack := range h.unreadyIn(claim, child) {
					if at(lack.until).Sub(at(lack.from)) > patience {
						sentences = append(sentences, fmt.Sprintf("%s %s reports Ready until version %d, although its %s %s is not ready from version %d on",
							h.Owner, cache.MetaObjectToName(claim.object), lack.until, kind, name, lack.from))
					}
				}
			}
		}
	}
	return sentences
}

// claims yields the states of owners that report Ready for their generation. The last one ends with the record.
func (h *History) claims() iter.Seq[state] {
	return func(yield func(state) bool) {
		end := uint64(0)
		for _, states := range h.objects {
			end = max(end, states[len(states)-1].from)
		}
		for _, states := range h.objects {
			for i, s := range states {
				if !h.Owner.Is(s.object) || s.deleted || !ClaimsReady(s.object) {
					continue
				}
				if s.until = end; i+1 < len(states) {
					s.until = states[i+1].from
				}
				if !yield(s) {
					return
				}
			}
		}
	}
}

// unreadyIn returns the times during a claim of an owner in which a child of it was not ready.
func (h *History) unreadyIn(claim state, child objectKey) (lacks []span) {
	for _, s := range h.between(child, claim.from, claim.until) {
		isUnready := metav1.IsControlledBy(s.object, claim.object) && child.kind.Unready(s.object) != ""
		from, until := max(s.from, claim.from), min(s.until+1, claim.until)
		switch last := len(lacks) - 1; {
		case !isUnready:
		case last >= 0 && lacks[last].until == from:
			lacks[last].until = until
		default:
			lacks = append(lacks, span{from: from, until: until})
		}
	}
	return lacks
}
