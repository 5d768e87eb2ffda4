// SPDX-License-Identifier: Apache-2.0

// Tests of the texts in messages: what differs, who changed it, how long they are.

package plan

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

func TestDescribeDifferences(t *testing.T) {
	mounts := func(paths ...string) *corev1.Container {
		container := &corev1.Container{Name: "nginx"}
		for _, path := range paths {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "page", MountPath: path})
		}
		return container
	}
	env := func(values ...string) *corev1.Container {
		container := &corev1.Container{Name: "nginx"}
		for i := 0; i < len(values); i += 2 {
			container.Env = append(container.Env, corev1.EnvVar{Name: values[i], Value: values[i+1]})
		}
		return container
	}
	for name, tt := range map[string]struct {
		found, wanted *corev1.Container
		want          string
	}{
		"none":                     {env("A", "1"), env("A", "1"), ""},
		"an element by its name":   {env("A", "1", "B", "2"), env("B", "2", "A", "3"), `spec.containers[nginx].env[A].value is "1", not "3"`},
		"a value for a terminal":   {env("A", "\x1b\r\n\u009b\u202e"), env("A", "1"), `spec.containers[nginx].env[A].value is "\x1b\r\n\u009b\u202e", not "1"`},
		"an element too few":       {env("A", "1"), env("A", "1", "B", "2"), `spec.containers[nginx].env[B] is missing`},
		"all elements too few":     {env(), env("B", "2"), `spec.containers[nginx].env[B] is missing`},
		"two elements of one name": {env("A", "1", "A", "2"), env("A", "1", "A", "3"), `spec.containers[nginx].env[1].value is "2", not "3"`},
		"an element too many":      {env("A", "1"), env(), `spec.containers[nginx].env is [{"name":"A","value":"1"}], not unset`},
		"a mount by its path":      {mounts("/a", "/b"), mounts("/c", "/b"), `spec.containers[nginx].volumeMounts[/a] is {"mountPath":"/a","name":"page"}, not unset; spec.containers[nginx].volumeMounts[/c] is missing`},
		"a volume mounted again":   {mounts("/a"), mounts("/a", "/b"), `spec.containers[nginx].volumeMounts[/b] is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := func(container *corev1.Container) *corev1.Pod {
				return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{*container}}}
			}
			footest.ExpectEqual(t, "the differences", tt.want, describeDifferences(pod(tt.found), pod(tt.wanted)))
		})
	}
}

func TestMissingMapsAreDescribedByTheirFields(t *testing.T) {
	wanted := &corev1.Pod{}
	wanted.Labels = map[string]string{"app": "web"}
	footest.ExpectEqual(t, "the differences", `metadata.labels.app is unset, not "web"`, describeDifferences(&corev1.Pod{}, wanted))
}

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
		"an autoscaler":              {[]metav1.ManagedFieldsEntry{entry("hpa", "scale", replicas, 1)}, "hpa/scale"},
		"the image of the container": {[]metav1.ManagedFieldsEntry{entry("kubectl-set", "", image, 1)}, "kubectl-set"},
		"the last of two":            {[]metav1.ManagedFieldsEntry{entry("b", "", image, 2), entry("a", "", replicas, 1)}, "b"},
		"another container":          {[]metav1.ManagedFieldsEntry{entry("a", "", sidecar, 1)}, ""},
		"a status":                   {[]metav1.ManagedFieldsEntry{entry("a", "status", replicas, 1)}, ""},
		"an unreadable entry":        {[]metav1.ManagedFieldsEntry{entry("a", "", "{", 1), {Manager: "b"}}, ""},
		"without a time":             {[]metav1.ManagedFieldsEntry{{Manager: "a", FieldsV1: metav1.NewFieldsV1(image)}}, "a"},
		"no manager":                 {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			live := &metav1.ObjectMeta{}
			live.SetManagedFields(row.fields)
			by := ChangedBy(live, []byte(patch))
			footest.ExpectEqual(t, "who changed it", row.want, strings.TrimSuffix(by.Name+"/"+by.Subresource, "/"))
		})
	}
}

func TestTruncate(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		want string
	}{
		"short enough":              {"12345678", "12345678"},
		"too long":                  {"123456789", "12345..."},
		"a character at the border": {"1234ééé", "1234..."},
	} {
		t.Run(name, func(t *testing.T) {
			got := Truncate(row.text, 8)
			if got != row.want || !utf8.ValidString(got) {
				t.Errorf("Truncate(%q) = %q, not %q", row.text, got, row.want)
			}
		})
	}
}
