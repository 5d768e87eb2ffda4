// SPDX-License-Identifier: Apache-2.0

// Tests of finalizers.

package external

import (
	"context"
	"encoding/json"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/test/footest"
)

// newerAPI is a typed client of one Foo in an API server whose CustomResourceDefinition has
// a field that the types lack.
type newerAPI struct {
	t       *testing.T
	stored  map[string]any // nil if the Foo is gone
	patches []string
	// meanwhile is what somebody else does after a read.
	meanwhile func(a *newerAPI)
}

func newNewerAPI(t *testing.T, live *foo) *newerAPI {
	t.Helper()
	api := &newerAPI{t: t}
	if live == nil {
		return api
	}
	text, err := json.Marshal(live)
	footest.Must(t, err)
	footest.Must(t, json.Unmarshal(text, &api.stored))
	// The live version is newer than the cached one.
	merge(api.stored, map[string]any{"spec": map[string]any{"fieldOfTheNextRelease": "of its user"}, "metadata": map[string]any{"resourceVersion": "20"}})
	return api
}

func (a *newerAPI) Get(_ context.Context, name string, _ metav1.GetOptions) (*foo, error) {
	live, err := a.answer(name)
	if a.meanwhile != nil {
		a.meanwhile(a)
	}
	return live, err
}

// Patch carries out a merge patch if its preconditions hold.
func (a *newerAPI) Patch(_ context.Context, name string, format types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (*foo, error) {
	footest.ExpectEqual(a.t, "format of the patch", types.MergePatchType, format)
	footest.ExpectEqual(a.t, "options", metav1.PatchOptions{FieldManager: "tests"}, options)
	footest.ExpectEqual(a.t, "subresources", []string(nil), subresources)
	a.patches = append(a.patches, string(patch))
	if a.stored == nil {
		return a.answer(name)
	}
	var sent map[string]any
	footest.Must(a.t, json.Unmarshal(patch, &sent))
	wanted, live := sent["metadata"].(map[string]any), a.stored["metadata"].(map[string]any)
	for _, precondition := range []string{"uid", "resourceVersion"} {
		if wanted[precondition] != nil && wanted[precondition] != live[precondition] {
			return nil, apierrors.NewConflict(footest.FoosResource.GroupResource(), name, nil)
		}
	}
	merge(a.stored, sent)
	live["resourceVersion"] = "21"
	return a.answer(name)
}

// answer returns the stored Foo, as far as the types know it.
func (a *newerAPI) answer(name string) (*foo, error) {
	if a.stored == nil {
		return nil, apierrors.NewNotFound(footest.FoosResource.GroupResource(), name)
	}
	known := &foo{}
	text, err := json.Marshal(a.stored)
	footest.Must(a.t, err)
	footest.Must(a.t, json.Unmarshal(text, known))
	return known, nil
}

// merge applies a JSON merge patch.
func merge(to, patch map[string]any) {
	for key, value := range patch {
		into, isObject := to[key].(map[string]any)
		switch part, isPart := value.(map[string]any); {
		case value == nil:
			delete(to, key)
		case isObject && isPart:
			merge(into, part)
		default:
			to[key] = value
		}
	}
}

func withFinalizers(names ...string) footest.FooOption {
	return func(f *foo) { f.Finalizers = names }
}

// addTheirs adds somebody else's finalizer.
func addTheirs(a *newerAPI) {
	merge(a.stored, map[string]any{"metadata": map[string]any{"resourceVersion": "22", "finalizers": []any{"theirs"}}})
}

func TestSetFinalizer(t *testing.T) {
	wrote := func(finalizers string) []string {
		return []string{`{"metadata":{"finalizers":` + finalizers + `,"resourceVersion":"20","uid":"uid-a"}}`}
	}
	for name, row := range map[string]struct {
		cached, live *foo
		meanwhile    func(*newerAPI)
		hold         bool
		patches      []string
		want         []string
		reason       metav1.StatusReason
	}{
		"added after those of others":    {footest.Foo("a"), footest.Foo("a", withFinalizers("others")), nil, true, wrote(`["others","ours"]`), []string{"others", "ours"}, ""},
		"added, the first":               {footest.Foo("a"), footest.Foo("a"), nil, true, wrote(`["ours"]`), []string{"ours"}, ""},
		"added already":                  {footest.Foo("a"), footest.Foo("a", withFinalizers("ours")), nil, true, nil, []string{"ours"}, ""},
		"removed, others' stay":          {footest.Foo("a"), footest.Foo("a", withFinalizers("x", "ours", "y")), nil, false, wrote(`["x","y"]`), []string{"x", "y"}, ""},
		"removed already":                {footest.Foo("a"), footest.Foo("a", withFinalizers("x")), nil, false, nil, []string{"x"}, ""},
		"another object of the name":     {footest.Foo("a"), footest.Foo("a", footest.WithFooUID("next")), nil, true, nil, nil, metav1.StatusReasonConflict},
		"being deleted since":            {footest.Foo("a"), footest.Foo("a", footest.BeingDeleted), nil, true, nil, []string{"foregroundDeletion"}, metav1.StatusReasonConflict},
		"being deleted, and cached so":   {footest.Foo("a", footest.BeingDeleted), footest.Foo("a", footest.BeingDeleted, withFinalizers("ours")), nil, false, wrote(`[]`), []string{}, ""},
		"somebody adds theirs meanwhile": {footest.Foo("a"), footest.Foo("a"), addTheirs, true, wrote(`["ours"]`), []string{"theirs"}, metav1.StatusReasonConflict},
		"gone":                           {footest.Foo("a"), nil, nil, true, nil, nil, metav1.StatusReasonNotFound},
		"gone meanwhile":                 {footest.Foo("a"), footest.Foo("a"), func(a *newerAPI) { a.stored = nil }, true, wrote(`["ours"]`), nil, metav1.StatusReasonNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			api := newNewerAPI(t, row.live)
			api.meanwhile = row.meanwhile
			written, err := SetFinalizer(t.Context(), api, row.cached, "ours", row.hold, metav1.PatchOptions{FieldManager: "tests"})
			if apierrors.ReasonForError(err) != row.reason || row.reason == "" && err != nil {
				t.Errorf("the error is %v", err)
			}
			footest.ExpectEqual(t, "patches", row.patches, api.patches)
			if api.stored == nil {
				return
			}
			stored, _ := api.answer("a")
			footest.ExpectEqual(t, "finalizers", row.want, stored.Finalizers)
			footest.ExpectEqual(t, "the field of the next release", "of its user", api.stored["spec"].(map[string]any)["fieldOfTheNextRelease"])
			if err == nil {
				footest.ExpectEqual(t, "the result", stored, written)
			}
		})
	}
}
