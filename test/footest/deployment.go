// SPDX-License-Identifier: Apache-2.0

// What the tests know of Deployments.

package footest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// deploymentRow is the row of the Deployments. Their controller is simulated, too.
var deploymentRow = &Row[*appsv1.Deployment]{
	Resource: appsv1.SchemeGroupVersion.WithResource("deployments"),
	Kind:     "Deployment",
	NamedBy:  "spec.deploymentName",
	Name:     func(foo *samplev1alpha1.Foo) string { return foo.Spec.DeploymentName },
	New:      newDeployment,
	Foreign:  foreignDeployment,
	Default:  rows.DefaultDeployment,
	Derive:   derivePullPolicies,
	Invalid: func(deployment *appsv1.Deployment) bool {
		return deployment.Spec.Replicas != nil && *deployment.Spec.Replicas < 0
	},
	Generation:   rows.DeploymentGeneration,
	ClearOwned:   clearOwnedOfDeployment,
	Differs:      deploymentDiffers,
	Drift:        driftDeployment,
	Edit:         editDeployment,
	EditOptional: func(deployment *appsv1.Deployment) { deployment.Spec.Replicas = new(int32(2)) },
	Advance:      rows.AdvanceDeployment,
	Unready:      notRolledOut,
	Serves:       func(deployment *appsv1.Deployment) bool { return deployment.Status.AvailableReplicas > 0 },
	NotInherited: replicasNotInherited,
	Misreported:  misreportedDeployment,
	Busy:         isRollingOut,
	Settled:      settledDeployment,
}

func newDeployment(foo *samplev1alpha1.Foo) *appsv1.Deployment {
	deployment := Created(foo.Name)
	deployment.Spec.Replicas = foo.DeepCopy().Spec.Replicas
	return deployment
}

func foreignDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "theirs"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"team": "b"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1"}, {Name: "proxy", Image: "envoy:1"}}},
			},
		},
	}
	return deployment.DeepCopy() // one map for each of the labels
}

// clearOwnedOfDeployment removes the container that a Foo owns, too, if no one else has
// put anything into it.
func clearOwnedOfDeployment(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) {
	if foo == nil || foo.Spec.Replicas != nil {
		deployment.Spec.Replicas = nil
	}
	delete(deployment.Spec.Template.Labels, "app")
	delete(deployment.Spec.Template.Labels, "controller")
	pod := &deployment.Spec.Template.Spec
	container := containerOf(deployment)
	if container == nil {
		return
	}
	container.Image = ""
	added := corev1.Container{Name: "nginx"}
	stored := added
	rows.DefaultContainer(&stored)
	if equality.Semantic.DeepEqual(*container, added) || equality.Semantic.DeepEqual(*container, stored) {
		pod.Containers = slices.DeleteFunc(pod.Containers, isOwnContainer)
	}
}

func isOwnContainer(c corev1.Container) bool { return c.Name == "nginx" }

// containerOf returns the container that a Foo owns, or nil.
func containerOf(deployment *appsv1.Deployment) *corev1.Container {
	containers := deployment.Spec.Template.Spec.Containers
	if i := slices.IndexFunc(containers, isOwnContainer); i >= 0 {
		return &containers[i]
	}
	return nil
}

func deploymentDiffers(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) string {
	spec := &deployment.Spec
	if want := foo.Spec.Replicas; want != nil && (spec.Replicas == nil || *want != *spec.Replicas) {
		return fmt.Sprintf("has %s replicas, Foo %s asks for %d", sizeText(spec.Replicas), foo.Name, *want)
	}
	if container := containerOf(deployment); container == nil || container.Image != "nginx:latest" {
		return "has no container nginx of nginx:latest"
	}
	if spec.Selector == nil {
		return ""
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		return err.Error()
	}
	if !selector.Matches(labels.Set(spec.Template.Labels)) {
		return fmt.Sprintf("has the selector %s, which does not match the labels %v", selector, spec.Template.Labels)
	}
	if len(selector.String()) > 4096 {
		return "" // too large for the cache: the labels are left alone
	}
	for key, want := range map[string]string{"app": "nginx", "controller": foo.Name} {
		if selected, ok := spec.Selector.MatchLabels[key]; ok {
			want = selected
		}
		allowed := selector.Matches(labels.Merge(spec.Template.Labels, labels.Set{key: want}))
		if got := spec.Template.Labels[key]; got != want && allowed {
			return fmt.Sprintf("has Pods with the label %s=%s, want %s", key, got, want)
		}
	}
	return ""
}

func sizeText(size *int32) string {
	if size == nil {
		return "any number of"
	}
	return fmt.Sprint(*size)
}

func driftDeployment(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) {
	if foo == nil || foo.Spec.Replicas != nil {
		deployment.Spec.Replicas = new(int32(9))
	}
	for _, key := range []string{"app", "controller"} {
		// The API server refuses a label that the selector does not select.
		if _, selected := deployment.Spec.Selector.MatchLabels[key]; !selected {
			metav1.SetMetaDataLabel(&deployment.Spec.Template.ObjectMeta, key, "drifted")
		}
	}
	if container := containerOf(deployment); container != nil {
		container.Image = "drifted:1"
	}
}

func editDeployment(deployment *appsv1.Deployment, note string) {
	metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, "kubectl.kubernetes.io/restartedAt", note)
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	if pod := &deployment.Spec.Template.Spec; len(pod.Containers) == 1 {
		pod.Containers = append([]corev1.Container{{Name: "sidecar", Image: "envoy:1"}}, pod.Containers...)
	}
}

func notRolledOut(deployment *appsv1.Deployment) string {
	size, status := ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status
	for _, condition := range status.Conditions {
		switch {
		case condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse:
			return "has not progressed: " + condition.Message
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			return "has Pods that could not be created: " + condition.Message
		}
	}
	if status.ObservedGeneration >= deployment.Generation &&
		status.Replicas == size && status.UpdatedReplicas == size && status.AvailableReplicas == size {
		return ""
	}
	return fmt.Sprintf("has generation %d (%d observed), and of %d Pods %d, %d updated, %d available",
		deployment.Generation, status.ObservedGeneration, size, status.Replicas, status.UpdatedReplicas, status.AvailableReplicas)
}

// replicasNotInherited compares numbers that a Foo may ask for.
func replicasNotInherited(deployment, earlier *appsv1.Deployment, foo *samplev1alpha1.Foo) string {
	has, had := sizeText(deployment.Spec.Replicas), sizeText(earlier.Spec.Replicas)
	if foo.Spec.Replicas != nil || has == had {
		return ""
	}
	return fmt.Sprintf("begins with %s replicas, Deployment %s has %s", has, earlier.Name, had)
}

func misreportedDeployment(foo *samplev1alpha1.Foo, deployment *appsv1.Deployment) string {
	size := *deployment.Spec.Replicas
	if status := foo.Status; status.Replicas != size || status.AvailableReplicas != size {
		return fmt.Sprintf("reports %d replicas, %d available, of %d", status.Replicas, status.AvailableReplicas, size)
	}
	return ""
}

func settledDeployment(foo *samplev1alpha1.Foo) string {
	foo.Status.Replicas, foo.Status.AvailableReplicas = 2, 2
	foo.Status.Selector = "app=nginx,controller=" + foo.Name
	return fmt.Sprintf(`Deployment %q has 2 of 2 Pods available`, foo.Spec.DeploymentName)
}

// isRollingOut says why the Deployment controller may still write. Its last writes are that
// of the condition, and that of the end of the last old Pod.
func isRollingOut(deployment *appsv1.Deployment) string {
	if deployment.Status.ObservedGeneration == deployment.Generation && ptr.Deref(deployment.Status.TerminatingReplicas, 0) == 0 {
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionTrue && condition.Reason == "NewReplicaSetAvailable" {
				return ""
			}
		}
	}
	return fmt.Sprintf("has not been rolled out: %+v", deployment.Status)
}

// derivePullPolicies sets the pull policies that an API server derives from the images.
func derivePullPolicies(deployment *appsv1.Deployment) {
	containers := deployment.Spec.Template.Spec.Containers
	for i := range containers {
		containers[i].ImagePullPolicy = cmp.Or(containers[i].ImagePullPolicy, pullPolicyOf(containers[i].Image))
	}
}

// pullPolicyOf returns the policy of an image: an image without a tag is the latest one.
func pullPolicyOf(image string) corev1.PullPolicy {
	name := image[strings.LastIndex(image, "/")+1:]
	if _, tag, tagged := strings.Cut(name, ":"); strings.Contains(name, "@") || tagged && tag != "latest" {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}
