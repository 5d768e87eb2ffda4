// SPDX-License-Identifier: Apache-2.0

// A Foo's Deployment: how it is created, and which of its fields the Foo owns.

package kinds

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
)

// containerName names the only container of a Foo's Pods. The flag -image sets its image. A
// Foo has no field for either: whoever may create a Foo gets these Pods in their own namespace
// and nothing more.
const containerName = "nginx"

// The labels by which a Foo's Deployment selects its Pods. A Deployment's selector is
// immutable, and other labels in the template would restart every Pod.
const (
	labelApp        = "app"
	labelController = "controller"
)

// minReplicas and maxReplicas bound the replicas that the CustomResourceDefinition accepts in
// a Foo and the admission policy accepts in a new Deployment.
const (
	minReplicas = 1
	maxReplicas = 10
)

// maxSelector is the length of the longest selector, in characters, that the
// CustomResourceDefinition accepts in the status.
const maxSelector = 4096

// maxSelectorTexts bounds how many labels, expressions and values of a selector the cache
// keeps, because short ones take more memory than their length suggests.
const maxSelectorTexts = 64

// deployment declares the Deployment of a Foo. The Foo owns few of its fields. The rest belongs to
// others: annotations, sidecars, the strategy, the time of a "kubectl rollout restart", and the
// replicas if the Foo does not set them.
func deployment(options Options) plan.Row[*samplev1alpha1.Foo, *appsv1.Deployment] {
	return plan.Row[*samplev1alpha1.Foo, *appsv1.Deployment]{
		Kind:     "Deployment",
		Resource: appsv1.SchemeGroupVersion.WithResource("deployments"),
		NamedBy:  "spec.deploymentName",
		ScaledBy: "spec.replicas",
		Name:     func(foo *samplev1alpha1.Foo) string { return foo.Spec.DeploymentName },
		Init: func(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) {
			deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: podLabels(foo)}
			deployment.Spec.Template.Spec = newPod(options)
		},
		SetOwned: func(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo, _ *plan.View) {
			if foo.Spec.Replicas != nil {
				deployment.Spec.Replicas = new(*foo.Spec.Replicas)
			}
			setPodLabels(deployment, foo)
			setImage(ownedContainer(&deployment.Spec.Template.Spec), options.Image)
		},
		Inherit: inheritReplicas,
		Keep:    keepDeployment(options.Image),
		Judge:   judgeRollout,
		Serves:  func(deployment *appsv1.Deployment) bool { return deployment.Status.AvailableReplicas > 0 },
		Restarts: func(before, after *appsv1.Deployment) bool {
			return before.Status.Replicas > 0 && !equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template)
		},
		Report: reportDeployment,
	}
}

// podLabels returns the labels of a Foo's Pods.
func podLabels(foo *samplev1alpha1.Foo) map[string]string {
	return map[string]string{labelApp: "nginx", labelController: foo.Name}
}

var podLabelKeys = []string{labelApp, labelController}

// setPodLabels sets the labels of a Deployment's template that a Foo owns. It leaves them
// alone if the selector is too large for the cache, because it can't tell which labels such
// a selector allows.
func setPodLabels(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) {
	if isOversized(deployment.Spec.Selector) {
		return
	}
	for key, value := range podLabels(foo) {
		// The selector is immutable, and the Pods must match it: if an adopted Deployment's
		// selector requires another value, use that.
		if selected, ok := deployment.Spec.Selector.MatchLabels[key]; ok {
			value = selected
		}
		if !isForbidden(deployment.Spec.Selector, key, value) {
			metav1.SetMetaDataLabel(&deployment.Spec.Template.ObjectMeta, key, value)
		}
	}
}

// isOversized reports whether a selector is too large for the cache and for the status, or
// missing because it was too large.
func isOversized(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return true
	}
	texts := len(selector.MatchLabels) + len(selector.MatchExpressions)
	size := 0
	for key, value := range selector.MatchLabels {
		size += len(key) + len(value)
	}
	for _, expression := range selector.MatchExpressions {
		texts += len(expression.Values)
		size += len(expression.Key)
		for _, value := range expression.Values {
			size += len(value)
		}
	}
	return texts > maxSelectorTexts || size > maxSelector
}

// isForbidden reports whether an expression of a selector excludes a label. The API
// server would refuse a template with that label.
func isForbidden(selector *metav1.LabelSelector, key, value string) bool {
	isOther := func(expression metav1.LabelSelectorRequirement) bool { return expression.Key != key }
	about := slices.DeleteFunc(slices.Clone(selector.MatchExpressions), isOther)
	if len(about) == 0 {
		return false
	}
	parsed, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: about})
	return err == nil && !parsed.Matches(labels.Set{key: value})
}

// inheritReplicas makes a new Deployment start with the replicas of an earlier one if the Foo
// leaves them to others.
func inheritReplicas(deployment, earlier *appsv1.Deployment, foo *samplev1alpha1.Foo) bool {
	if foo.Spec.Replicas != nil {
		return false
	}
	if earlier.Spec.Replicas != nil {
		deployment.Spec.Replicas = new(min(max(*earlier.Spec.Replicas, minReplicas), maxReplicas))
	}
	return true
}

// setImage sets a container's image. It also sets the pull policy if that was the API
// server's default for the old image: the default for the tag latest is Always.
func setImage(container *corev1.Container, image string) {
	if container.Image != image && container.ImagePullPolicy == defaultPullPolicy(container.Image) {
		container.ImagePullPolicy = defaultPullPolicy(image)
	}
	container.Image = image
}

// defaultPullPolicy returns what the API server sets for an image
// (SetDefaults_Container in k8s.io/kubernetes/pkg/apis/core/v1).
func defaultPullPolicy(image string) corev1.PullPolicy {
	name, _, digested := strings.Cut(image, "@")
	repository := name[strings.LastIndex(name, "/")+1:]
	_, tag, tagged := strings.Cut(repository, ":")
	if tag == "latest" || !tagged && !digested {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// writableFolders are the directories that nginx writes to. They belong to root in its image,
// so a Pod without root gets a volume for each.
var writableFolders = []corev1.VolumeMount{{Name: "cache", MountPath: "/var/cache/nginx"}, {Name: "run", MountPath: "/run"}}

// newPod returns the settings of a new Deployment's Pods that the Foo does not own. The Pods
// run nginx without root, also in namespaces that enforce the restricted Pod Security
// Standard, and have no token. Users may change these settings. Adding them to a Deployment
// that has Pods, such as one created by upstream's controller, would restart the Pods.
func newPod(options Options) corev1.PodSpec {
	pod := corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(101)), // the user nginx of the image
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			// The image's configuration listens on port 80.
			Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}},
		},
		Containers: []corev1.Container{newContainer()},
	}
	for _, folder := range writableFolders {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: folder.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	if options.OmitPodUser {
		pod.SecurityContext.RunAsUser = nil
	}
	return pod
}

func newContainer() corev1.Container {
	return corev1.Container{
		Name: containerName, VolumeMounts: slices.Clone(writableFolders),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// isLikeNew reports whether a Pod still has the volumes of a new one.
func isLikeNew(pod *corev1.PodSpec) bool {
	for _, folder := range writableFolders {
		if !slices.ContainsFunc(pod.Volumes, func(volume corev1.Volume) bool { return volume.Name == folder.Name }) {
			return false
		}
	}
	return true
}

func isOwnedContainer(container corev1.Container) bool { return container.Name == containerName }

// ownedContainer returns the container that a Foo owns, and adds it if it is missing.
func ownedContainer(pod *corev1.PodSpec) *corev1.Container {
	i := slices.IndexFunc(pod.Containers, isOwnedContainer)
	if i < 0 {
		added := corev1.Container{Name: containerName}
		if isLikeNew(pod) {
			added = newContainer()
		}
		i, pod.Containers = len(pod.Containers), append(pod.Containers, added)
	}
	return &pod.Containers[i]
}
