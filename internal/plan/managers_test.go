// SPDX-License-Identifier: Apache-2.0

// Tests of who set a field.

package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestChangedBy(t *testing.T) {
	const (
		replicas = `{"f:spec": {"f:replicas": {}}}`
		image    = `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"nginx\"}": {".": {}, "f:image": {}}}}}}}`
		sidecar  = `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"logs\"}": {"f:image": {}}}}}}}`
		patch    = `{"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"replicas": 2, "template": {"spec": {` +
			`"$setElementOrder/containers": [{"name": "nginx"}], "containers": [{"name": "nginx", "image": "nginx:latest"}]}}}}`
	)
	entry := func(manager, subresource, fields string, minute int) metav1.ManagedFieldsEntry {
		at := metav1.Date(2026, 11, 24, 12, minute, 0, 0, time.UTC)
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	for name, row := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		"an autoscaler":              {[]metav1.ManagedFieldsEntry{entry("hpa", "scale", replicas, 1)}, "hpa"},
		"the image of the container": {[]metav1.ManagedFieldsEntry{entry("kubectl-set", "", image, 1)}, "kubectl-set"},
		"the last of two":            {[]metav1.ManagedFieldsEntry{entry("b", "", image, 2), entry("a", "", replicas, 1)}, "b"},
		"another container":          {[]metav1.ManagedFieldsEntry{entry("a", "", sidecar, 1)}, ""},
		"a status":                   {[]metav1.ManagedFieldsEntry{entry("a", "status", replicas, 1)}, ""},
		"what nobody can read":       {[]metav1.ManagedFieldsEntry{entry("a", "", "{", 1), {Manager: "b"}}, ""},
		"without a time":             {[]metav1.ManagedFieldsEntry{{Manager: "a", FieldsV1: metav1.NewFieldsV1(image)}}, "a"},
		"nobody":                     {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			live := child("a")
			live.SetManagedFields(row.fields)
			if got := ChangedBy(live, []byte(patch)); got != row.want {
				t.Errorf("it is %q, not %q", got, row.want)
			}
		})
	}
}
