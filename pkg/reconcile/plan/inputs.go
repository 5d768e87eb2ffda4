// SPDX-License-Identifier: Apache-2.0

// The inputs of a write, to recognize that a retry would send the same.

package plan

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// inputs are the inputs of a write: the owner's desired state, and for a child, the decision.
// Writes from equal inputs send the API server the same. The status of children is not among
// them. equality.Semantic can compare all fields.
type inputs struct {
	UID         types.UID
	Generation  int64
	Terminating bool
	// Spec is compared, too: after a restore of etcd, a generation can occur twice.
	Spec any
	// Request is the sync that the user asks for: it has to be tried now.
	Request string

	Action Action
	// The other fields determine whether a write to an object can succeed. They are zero if there
	// is no object yet.
	Object            types.UID
	ObjectVersion     string
	ObjectTerminating bool
	ObjectOwners      []metav1.OwnerReference
}

func sameInputs(a, b inputs) bool { return equality.Semantic.DeepEqual(a, b) }

// StatusInputs returns the inputs of a write to an owner's status, for comparison.
func (k *Kind) StatusInputs(owner Owner) any { return k.inputsOf(owner) }

func (k *Kind) inputsOf(owner Owner) inputs {
	return inputs{
		UID: owner.GetUID(), Generation: owner.GetGeneration(), Terminating: IsTerminating(owner), Spec: owner.GetSpec(), Request: k.requestOf(owner),
	}
}

// Inputs returns the inputs of the write that carries out a step, for comparison.
func (s *Step) Inputs() any {
	from := s.OwnerKind.inputsOf(s.Owner)
	from.Action = s.Action
	if s.Found != nil {
		from.Object, from.ObjectVersion = s.Found.GetUID(), VersionOf(s.Found)
		from.ObjectTerminating, from.ObjectOwners = IsTerminating(s.Found), s.Found.GetOwnerReferences()
	}
	return from
}

// VersionOf returns a value that changes with an object's spec and, for most kinds, not with
// its status: the generation. Kinds without a status have no generation; for them it returns
// the resourceVersion.
func VersionOf(object metav1.Object) string {
	if generation := object.GetGeneration(); generation > 0 {
		return strconv.FormatInt(generation, 10)
	}
	return object.GetResourceVersion()
}
