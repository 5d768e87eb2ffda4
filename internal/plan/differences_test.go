// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

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
		"an element too many":      {env("A", "1"), env(), `spec.containers[nginx].env is [{"name":"A","value":"1"}], not left out`},
		"a mount by its path":      {mounts("/a", "/b"), mounts("/c", "/b"), `spec.containers[nginx].volumeMounts[/a] is {"mountPath":"/a","name":"page"}, not left out; spec.containers[nginx].volumeMounts[/c] is missing`},
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
	footest.ExpectEqual(t, "the differences", `metadata.labels.app is missing, not "web"`, describeDifferences(&corev1.Pod{}, wanted))
}
