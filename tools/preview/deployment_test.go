// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/kinds"
	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/preview"
	"example.com/sample-controller/tools/preview/previewtest"
)

// A restored object without a controller shows by its labels, or its managers, whose it was.
func TestWhoseARestoredObjectWas(t *testing.T) {
	written := func(child footest.Object) {
		child.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "restore"}, {Manager: names.Controller}})
	}
	for what, row := range map[string]struct {
		changes []footest.ChildOption
		want    bool
	}{
		"as created":                      {[]footest.ChildOption{footest.WithoutOwner}, true},
		"with drift and additions":        {[]footest.ChildOption{footest.WithoutOwner, footest.Drifted, footest.WithSidecar}, true},
		"with a controller":               {[]footest.ChildOption{footest.WithOwner("v1", "Other", "2")}, false},
		"being deleted":                   {[]footest.ChildOption{footest.WithoutOwner, footest.Terminating}, false},
		"promised to another":             {[]footest.ChildOption{footest.WithoutOwner, footest.WithAdoptBy("other")}, false},
		"of another Foo, with managers":   {[]footest.ChildOption{footest.WithoutOwner, footest.WithTemplateLabel("controller", "other"), written}, false},
		"with another label":              {[]footest.ChildOption{footest.WithoutOwner, footest.WithTemplateLabel("app", "other")}, false},
		"with another label and managers": {[]footest.ChildOption{footest.WithoutOwner, footest.WithTemplateLabel("app", "other"), written}, true},
	} {
		child := footest.Deployment("a", row.changes...)
		got := slices.ContainsFunc(previewtest.Of(kinds.Declared(kinds.Options{Image: footest.DefaultImage})[0], footest.Foo("a"), []footest.Object{child}).Writes, func(w preview.Write) bool {
			return w.WasMadeForOwner()
		})
		footest.ExpectEqual(t, "whether one "+what+" was the Foo's", row.want, got)
	}
}
