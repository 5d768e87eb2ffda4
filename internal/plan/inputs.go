// SPDX-License-Identifier: Apache-2.0

// What a write was made from, to recognize that a retry would send the same.

package plan

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// inputs are what a write was made from: what an owner asks for, and for a child what was
// decided. Writes from equal ones would send the API server the same. The status of children
// is not among them. All fields can be compared by equality.Semantic.
type inputs struct {
	UID         types.UID
	Generation  int64
	Terminating bool
	// Spec is compared, too: after a restore of etcd a generation can occur twice.
	Spec any

	Action   Action
	Named    *objectInputs
	Obsolete []objectInputs
}

// objectInputs determine whether a write to an object can succeed.
type objectInputs struct {
	UID         types.UID
	Version     string
	Terminating bool
	Owners      []metav1.OwnerReference
}

// StatusInputs returns what an owner's status is written from, to be compared.
func StatusInputs(owner Owner) any { return inputsOf(owner) }

func inputsOf(owner Owner) inputs {
	return inputs{
		UID: owner.GetUID(), Generation: owner.GetGeneration(), Terminating: IsTerminating(owner), Spec: owner.GetSpec(),
	}
}

// Inputs returns what a decision is carried out from, to be compared.
func (c *Child) Inputs() any {
	from := inputsOf(c.Owner)
	from.Action = c.Action
	if c.Named != nil {
		from.Named = new(inputsOfObject(c.Named))
	}
	for _, child := range c.Obsolete {
		from.Obsolete = append(from.Obsolete, inputsOfObject(child))
	}
	return from
}

func inputsOfObject(object metav1.Object) objectInputs {
	return objectInputs{object.GetUID(), VersionOf(object), IsTerminating(object), object.GetOwnerReferences()}
}

// VersionOf returns what changes with an object's spec, and for most kinds not with its
// status: the generation. Kinds without a status have none, and go by resourceVersion.
func VersionOf(object metav1.Object) string {
	if generation := object.GetGeneration(); generation > 0 {
		return strconv.FormatInt(generation, 10)
	}
	return object.GetResourceVersion()
}
