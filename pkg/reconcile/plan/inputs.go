// SPDX-License-Identifier: Apache-2.0

// The inputs of a write, to recognize that a retry would send the same.

package plan

import (
	"strconv"

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

	Action Action
	// Object is the object that the write is about, or nil if there is none.
	Object *objectInputs
}

// objectInputs determine whether a write to an object can succeed.
type objectInputs struct {
	UID         types.UID
	Version     string
	Terminating bool
	Owners      []metav1.OwnerReference
}

// StatusInputs returns the inputs of a write to an owner's status, for comparison.
func StatusInputs(owner Owner) any { return inputsOf(owner) }

func inputsOf(owner Owner) inputs {
	return inputs{
		UID: owner.GetUID(), Generation: owner.GetGeneration(), Terminating: IsTerminating(owner), Spec: owner.GetSpec(),
	}
}

// Inputs returns the inputs of the write that carries out an action on an object, or nil if there
// is none yet, for comparison.
func (c *Child) Inputs(action Action, object Object) any {
	from := inputsOf(c.Owner)
	from.Action = action
	if object != nil {
		from.Object = new(inputsOfObject(object))
	}
	return from
}

func inputsOfObject(object metav1.Object) objectInputs {
	return objectInputs{object.GetUID(), VersionOf(object), IsTerminating(object), object.GetOwnerReferences()}
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
