// SPDX-License-Identifier: Apache-2.0

// The narrator: from writes in the audit log to lines.

package main

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/audit"
)

// hold is the time for which the demo waits before it prints a write. The server logs a
// write after the response, so the effect of a write may be logged before its cause.
const hold = 150 * time.Millisecond

// narrator converts writes to lines.
type narrator struct {
	// self is the user at the terminal.
	self string
	// resources are those of narratedResources.
	resources []string
	// waiting has the writes of the last hold.
	waiting []audit.Write
	// objects has each object after its last write.
	objects map[key]audit.Object
}

type key struct{ resource, namespace, name string }

// narrate adds new writes, and returns a line for each write that is due and of interest.
func (n *narrator) narrate(writes []audit.Write, now time.Time) []line {
	for _, w := range writes {
		if n.isNarrated(w) {
			n.waiting = append(n.waiting, single(w)...)
		}
	}
	inOrder(n.waiting)
	tighten(n.waiting)
	due := 0
	for due < len(n.waiting) && now.Sub(n.waiting[due].Done) >= hold {
		due++
	}
	var lines []line
	for _, w := range n.waiting[:due] {
		if l, ok := n.lineOf(w); ok {
			lines = append(lines, l)
		}
	}
	n.waiting = slices.Delete(n.waiting, 0, due)
	return lines
}

// lineOf describes a write in a line. It returns false for a write of no interest.
func (n *narrator) lineOf(w audit.Write) (line, bool) {
	k := key{w.Resource, w.Namespace, w.Name}
	before, known := n.objects[k]
	if !known && !creates(w) {
		return line{}, false // The server may accept two deletions of a Pod at the same time.
	}
	after := result(w, before)
	after.Kind = before.Kind
	if creates(w) && w.Response != nil {
		after.Kind = w.Response.Kind // that of later responses may be another, such as Status
	}
	did, note := describe(w, before, after)
	switch {
	case isGone(after) && (did == removed || w.Verb == "delete"):
		delete(n.objects, k)
	case n.objects == nil:
		n.objects = map[key]audit.Object{k: after}
	default:
		n.objects[k] = after
	}
	name := w.Name
	if w.Namespace != metav1.NamespaceDefault {
		name = w.Namespace + "/" + name
	}
	return line{at: w.Done, who: actorOf(w, n.self), did: did, kind: after.Kind, name: name, note: note}, did != ""
}

// single splits a write of many objects into one write for each object. The response to a
// deletecollection lists the objects.
func single(w audit.Write) []audit.Write {
	if w.Verb != deleteMany || w.Response == nil {
		return []audit.Write{w}
	}
	each := make([]audit.Write, 0, len(w.Response.Items))
	for _, item := range w.Response.Items {
		one := w
		one.Name, one.Response = item.Metadata.Name, nil
		each = append(each, one)
	}
	return each
}

// inOrder sorts writes by the order in which they took effect. A client reacts to a
// change with a request that the server receives later, so causes come before their
// effects. Requests that the server handles at the same time are sorted by the
// resourceVersions in their responses, if there are any.
func inOrder(writes []audit.Write) {
	slices.SortStableFunc(writes, func(a, b audit.Write) int { return a.Received.Compare(b.Received) })
	var places []int
	var versioned []audit.Write
	for i, w := range writes {
		if version(w) > 0 {
			places, versioned = append(places, i), append(versioned, w)
		}
	}
	slices.SortStableFunc(versioned, func(a, b audit.Write) int { return cmp.Compare(version(a), version(b)) })
	for i, place := range places {
		writes[place] = versioned[i]
	}
}

// version returns the resourceVersion after a write, or 0 if the response does not
// contain it. resourceVersions increase with each write to the cluster. The response to
// the removal of the last finalizer has the resourceVersion before the write.
func version(w audit.Write) uint64 {
	if w.Response == nil || isGone(*w.Response) {
		return 0
	}
	n, _ := strconv.ParseUint(w.Response.Metadata.ResourceVersion, 10, 64)
	return n
}

// tighten corrects the times of sorted writes: each write took effect no later than the
// next one.
func tighten(writes []audit.Write) {
	for i := len(writes) - 2; i >= 0; i-- {
		if writes[i].Done.After(writes[i+1].Done) {
			writes[i].Done = writes[i+1].Done
		}
	}
}
