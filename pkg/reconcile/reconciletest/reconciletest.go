// SPDX-License-Identifier: Apache-2.0

package reconciletest

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
)

// Controller is a controller of the kind F, and what Test needs to know of it. Kind, Example, Edits and Start
// are required.
type Controller[F plan.Owner] struct {
	// Kind is the declaration of the kind and of its children.
	Kind *plan.Kind
	// Example is an owner that wants a child of each kind, and gets it.
	Example F
	// Edits are changes of the spec that users make, of an owner like Example or of one that was edited. All
	// must be possible: each ends with a ready owner.
	Edits []func(owner F)
	// Start runs the controller.
	Start Start

	// Default sets what the CustomResourceDefinition defaults.
	Default func(owner F)
	// ClearOwned removes what the controller itself writes to an owner, besides the status: its
	// finalizer, for example. nil means that it writes only the status.
	ClearOwned func(owner F)
	// Cluster has, by the kind of children, what the cluster does to them. Deployments have one; for any
	// other kind nothing is done by default, so that a child that Judge never calls ready stays so.
	Cluster map[string]Cluster
	// NoObjects are further resources that the controller's informers list. There is no object of them.
	NoObjects []schema.GroupVersionResource
	// NoEvents is true if the controller records no event when its condition Ready changes.
	NoEvents bool
	// Every is n to run one case in n. 0 means all, and with -short one in ten.
	Every int
	// AtRest has rules of the author's own: it says what is wrong with a world that does not change
	// any more.
	AtRest func(w rules.World) []string
}

// Test runs a controller of a kind under each fault, and fails for each rule that it breaks.
func Test[F plan.Owner](t *testing.T, c Controller[F]) {
	t.Helper()
	owner, err := derive(c)
	if err != nil {
		t.Fatal(err)
	}
	all := workloads(owner)
	for i := range c.Edits {
		all = append(all, workload{name: fmt.Sprintf("edit %d", i+1), steps: []step{
			"create a web", step(fmt.Sprintf("scale a %d", i+2)), step(fmt.Sprintf("scale a 1; scale a %d", i+2)), "scale a 1",
		}})
	}
	every := sampling()
	if !isNamed() {
		every = max(every, c.Every)
	}
	testWorkloads(t, owner, c.Start, all, every)
}
