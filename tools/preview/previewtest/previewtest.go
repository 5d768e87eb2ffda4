// SPDX-License-Identifier: Apache-2.0

// Package previewtest compares a preview with the writes that the controller sent.
package previewtest

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/preview"
)

// Of returns the preview of the next sync of a Foo, with other owners and the children of any
// owner, or nil if there is no Foo.
func Of(kind *plan.Kind, foo footest.Object, others []footest.Object) *preview.Sync {
	if foo == nil {
		return nil
	}
	world := preview.World{}
	for _, other := range others {
		world.Add(footest.KindOf(other).Resource, other)
	}
	return preview.Of(kind, foo.(plan.Owner), world, footest.Now) //nolint:forcetypeassert // an object of the kind
}

// request is a write: its verb, resource and name, and the object that it sends.
type request struct {
	line string
	sent runtime.Object
}

// Check fails unless the writes among the actions of an API's clients equal the preview's, in
// order and field by field. A patch counts as the equivalent update.
func Check(t *testing.T, announced *preview.Sync, api *footest.FakeAPI, actions ...[]clienttesting.Action) {
	t.Helper()
	want, got := requestsOf(announced), writesAmong(api, slices.Concat(actions...))
	if wantLines, gotLines := linesOf(want), linesOf(got); !slices.Equal(gotLines, wantLines) {
		t.Errorf("the sync wrote %q, the preview announced %q", gotLines, wantLines)
		return
	}
	for i := range want {
		if foo, ok := got[i].sent.(plan.Owner); ok {
			footest.ExpectEqual(t, "the status", announced.After.GetStatus(), foo.GetStatus())
			continue
		}
		footest.ExpectEqual(t, want[i].line, want[i].sent, got[i].sent)
	}
}

func requestsOf(announced *preview.Sync) []request {
	var requests []request
	if announced == nil {
		return nil
	}
	for i, write := range announced.Writes {
		verb := string(write.Action)
		if write.Action == plan.ActionAdopt {
			verb = "update"
		}
		if write.Action == plan.ActionDelete && i > 0 && announced.Writes[i-1].Action == write.Action && announced.Writes[i-1].Resource == write.Resource {
			continue // a sync deletes one child of a kind
		}
		if write.IsSent() {
			requests = append(requests, request{verb + " " + write.Resource.Resource + " " + write.Name, write.After})
		}
	}
	if announced.ChangesStatus() && !announced.StatusMayWait() {
		requests = append(requests, request{"update " + footest.OwnerOf(announced.Owner).Resource.Resource + " " + announced.Owner.GetName(), announced.Owner})
	}
	return requests
}

func writesAmong(api *footest.FakeAPI, actions []clienttesting.Action) []request {
	var requests []request
	for _, action := range actions {
		line := action.GetVerb() + " " + action.GetResource().Resource + " "
		switch action := action.(type) {
		case clienttesting.CreateActionImpl:
			requests = append(requests, request{line + nameOf(action.Object), action.Object})
		case clienttesting.UpdateActionImpl:
			requests = append(requests, request{line + nameOf(action.Object), action.Object})
		case clienttesting.PatchActionImpl:
			requests = append(requests, request{"update " + action.GetResource().Resource + " " + action.Name, api.SentBy(action)})
		case clienttesting.DeleteActionImpl:
			requests = append(requests, request{line: line + action.Name})
		}
	}
	return requests
}

func nameOf(object runtime.Object) string {
	return object.(metav1.Object).GetName() //nolint:forcetypeassert // all objects of the API have names
}

func linesOf(requests []request) []string {
	var lines []string
	for _, r := range requests {
		lines = append(lines, r.line)
	}
	return lines
}
