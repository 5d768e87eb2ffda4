// SPDX-License-Identifier: Apache-2.0

// The changes that must follow an act.

package main

import "slices"

// step is a change that must follow an act.
type step struct {
	kind string
	did  string
	who  string
	// note is the last part of the line's note; "" means any.
	note string
}

// firstSteps returns the steps from a Foo to a Ready Pod, and back to the Foo's status.
func firstSteps() []step {
	return []step{
		{kind: "Foo", did: created, who: you},
		{kind: "Deployment", did: created, who: sampleController},
		{kind: "ReplicaSet", did: created, who: deploymentController},
		{kind: "Pod", did: created, who: replicaSetController},
		{kind: "Pod", did: bound, who: scheduler},
		{kind: "Pod", did: reported, who: kubelet, note: ready},
		{kind: "Foo", did: reported, who: sampleController, note: ready},
	}
}

// scaleSteps returns the steps from the scaled Foo to three Ready Pods, and back.
func scaleSteps() []step {
	return []step{
		{kind: "Foo", did: scaled, who: you},
		{kind: "Deployment", did: scaled, who: sampleController},
		{kind: "ReplicaSet", did: scaled, who: deploymentController},
		{kind: "Pod", did: reported, who: kubelet, note: ready},
		{kind: "Pod", did: reported, who: kubelet, note: ready},
		{kind: "Foo", did: reported, who: sampleController, note: "3/3 available, " + ready},
	}
}

// deleteSteps returns the steps from the deletion of the Foo to that of its last Pod.
func deleteSteps() []step {
	return []step{
		{kind: "Foo", did: deleted, who: you},
		{kind: "Deployment", did: deleted, who: collector},
		{kind: "ReplicaSet", did: deleted, who: collector},
		{kind: "Pod", did: removed, who: kubelet},
		{kind: "Pod", did: removed, who: kubelet},
		{kind: "Pod", did: removed, who: kubelet},
	}
}

func (s step) is(l line) bool {
	return s.kind == l.kind && s.did == l.did && s.who == l.who && (s.note == "" || endsWith(l.note, s.note))
}

func (s step) String() string {
	text := s.kind + " " + s.did
	if s.note != "" {
		text += " " + s.note
	}
	return text + " by " + s.who
}

// without returns the steps that remain after a line.
func without(steps []step, l line) []step {
	i := slices.IndexFunc(steps, func(s step) bool { return s.is(l) })
	if i < 0 {
		return steps
	}
	return slices.Delete(slices.Clone(steps), i, i+1)
}
