// SPDX-License-Identifier: Apache-2.0

// What a write was made from, to recognize that a retry would send the same.

package plan

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Inputs is what a write was made from: a Foo, and for a child what was decided.
type Inputs struct {
	owner    Owner
	action   Action
	named    *state
	obsolete []*state
}

// state is what decides over the success of a write to an object.
type state struct {
	uid         types.UID
	version     string
	terminating bool
	owners      []metav1.OwnerReference
}

// StatusInputs returns those of writing an owner's status.
func StatusInputs(owner Owner) Inputs { return Inputs{owner: owner} }

// Inputs returns those of carrying out what was decided.
func (c *Child) Inputs() Inputs {
	inputs := Inputs{owner: c.Owner, action: c.Action}
	if c.Named != nil {
		inputs.named = stateOf(c.Named)
	}
	for _, child := range c.Obsolete {
		inputs.obsolete = append(inputs.obsolete, stateOf(child))
	}
	return inputs
}

func stateOf(object metav1.Object) *state {
	return &state{object.GetUID(), VersionOf(object), IsTerminating(object), object.GetOwnerReferences()}
}

// VersionOf returns what changes with an object's spec, and for most kinds not with its
// status: the generation. Kinds without a status have none, and go by resourceVersion.
func VersionOf(object metav1.Object) string {
	if generation := object.GetGeneration(); generation > 0 {
		return strconv.FormatInt(generation, 10)
	}
	return object.GetResourceVersion()
}

// Same reports whether writes from two inputs would send the API server the same. It ignores the
// status of children.
func (t Inputs) Same(other Inputs) bool {
	return t.owner != nil && other.owner != nil && AsksTheSame(t.owner, other.owner) && t.action == other.action &&
		t.named.same(other.named) && slices.EqualFunc(t.obsolete, other.obsolete, (*state).same)
}

func (s *state) same(other *state) bool {
	if s == nil || other == nil {
		return s == other
	}
	return s.uid == other.uid && s.version == other.version && s.terminating == other.terminating &&
		equality.Semantic.DeepEqual(s.owners, other.owners)
}
