// SPDX-License-Identifier: Apache-2.0

// What a write was made from, to recognize that a retry would send the same.

package plan

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Inputs is what a write was made from: what an owner asks for, and for a child what was
// decided. Writes from equal Inputs would send the API server the same. The status of
// children is not among them.
type Inputs struct {
	UID         types.UID
	Generation  int64
	Terminating bool
	// Spec is compared, too: after a restore of etcd a generation can occur twice.
	Spec any

	Action   Action
	Named    *ObjectInputs
	Obsolete []ObjectInputs
}

// ObjectInputs is what determines whether a write to an object can succeed.
type ObjectInputs struct {
	UID         types.UID
	Version     string
	Terminating bool
	Owners      []metav1.OwnerReference
}

// StatusInputs returns those of writing an owner's status.
func StatusInputs(owner Owner) Inputs {
	return Inputs{
		UID: owner.GetUID(), Generation: owner.GetGeneration(), Terminating: IsTerminating(owner), Spec: owner.GetSpec(),
	}
}

// Inputs returns those of carrying out what was decided.
func (c *Child) Inputs() Inputs {
	inputs := StatusInputs(c.Owner)
	inputs.Action = c.Action
	if c.Named != nil {
		inputs.Named = new(inputsOf(c.Named))
	}
	for _, child := range c.Obsolete {
		inputs.Obsolete = append(inputs.Obsolete, inputsOf(child))
	}
	return inputs
}

func inputsOf(object metav1.Object) ObjectInputs {
	return ObjectInputs{object.GetUID(), VersionOf(object), IsTerminating(object), object.GetOwnerReferences()}
}

// VersionOf returns what changes with an object's spec, and for most kinds not with its
// status: the generation. Kinds without a status have none, and go by resourceVersion.
func VersionOf(object metav1.Object) string {
	if generation := object.GetGeneration(); generation > 0 {
		return strconv.FormatInt(generation, 10)
	}
	return object.GetResourceVersion()
}
