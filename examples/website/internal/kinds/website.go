// The kind Website: its Deployment and its Service, and the Secret and the ConfigMap that it names.

package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "example.com/acme/pkg/apis/acme/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
)

// declareWebsite puts the kind and each row of its table beside the informer and the client.
func declareWebsite(clients Clients, options Options) *table.Kind {
	return table.Of(
		plan.Kind{Name: "Website", Resource: api.SchemeGroupVersion.WithResource("websites")},
		clients.CustomInformers.Acme().V1alpha1().Websites().Informer(), clients.Custom.AcmeV1alpha1().Websites,
		// No informer: the right to get is enough, and each Secret is read once a minute.
		table.Uses(secretOfWebsite, nil, clients.Kube.CoreV1().Secrets),
		table.Uses(settingsOfWebsite, clients.MetadataInformers.ForResource(settingsOfWebsite.Resource).Informer(), clients.Kube.CoreV1().ConfigMaps),
		table.Owns(rowOfWebsite(options), clients.KubeInformers.Apps().V1().Deployments().Informer(), clients.Kube.AppsV1().Deployments),
		table.Owns(serviceOfWebsite, clients.KubeInformers.Core().V1().Services().Informer(), clients.Kube.CoreV1().Services),
	)
}

var secretOfWebsite = plan.Ref[*api.Website, *corev1.Secret]{
	Kind: "Secret", Resource: corev1.SchemeGroupVersion.WithResource("secrets"), NamedBy: "spec.secret",
	Names: func(owner *api.Website) []string { return []string{owner.Spec.Secret} },
	// What the Pods depend on. Only a hash of it is kept.
	Digest: func(secret *corev1.Secret) any { return secret.Data },
	Judge: func(secret *corev1.Secret) plan.Readiness {
		if len(secret.Data["password"]) == 0 {
			return plan.Stalled("SecretFailed", "Secret %q has no key %q: add it", secret.Name, "password")
		}
		return plan.Ready("")
	},
}

var settingsOfWebsite = plan.Ref[*api.Website, *corev1.ConfigMap]{
	Kind: "ConfigMap", Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), NamedBy: "spec.settings",
	Names:  func(owner *api.Website) []string { return []string{owner.Spec.Settings} }, // "" names none
	Digest: func(settings *corev1.ConfigMap) any { return settings.Data },
}

// serviceOfWebsite declares the Service. The API server sets its other fields.
var serviceOfWebsite = plan.Row[*api.Website, *corev1.Service]{
	Kind: "Service", Resource: corev1.SchemeGroupVersion.WithResource("services"),
	Name: func(owner *api.Website) string { return owner.Name },
	SetOwned: func(child *corev1.Service, owner *api.Website, _ *plan.View) {
		child.Spec.Selector = podLabelsOfWebsite(owner)
		if len(child.Spec.Ports) != 1 {
			child.Spec.Ports = make([]corev1.ServicePort, 1)
		}
		child.Spec.Ports[0].Port = 80
	},
	Keep: func(kept, found *corev1.Service) {
		kept.Spec.Selector, kept.Spec.Ports = found.Spec.Selector, found.Spec.Ports
	},
}

// The annotations of the Pod template that make Pods roll when what the Website names has changed.
const (
	secretDigest   = "acme.dev/secret"
	settingsDigest = "acme.dev/settings"
)

// rowOfWebsite declares the Deployment of a Website. The functions are pure: they are called any number
// of times, and must not change their owner, except for Report, which gets a copy.
func rowOfWebsite(options Options) plan.Row[*api.Website, *appsv1.Deployment] {
	return plan.Row[*api.Website, *appsv1.Deployment]{
		Kind:     "Deployment",
		Resource: appsv1.SchemeGroupVersion.WithResource("deployments"),
		// The name of the child. A child of an earlier name is deleted.
		Name: func(owner *api.Website) string { return owner.Name },
		// The field that an autoscaler must find unset.
		ScaledBy: "spec.replicas",
		// What is set once, at creation: immutable fields, and defaults that users may change.
		Init: func(child *appsv1.Deployment, owner *api.Website) {
			child.Spec.Selector = &metav1.LabelSelector{MatchLabels: podLabelsOfWebsite(owner)}
			child.Spec.Template.Spec.AutomountServiceAccountToken = new(false)
		},
		// The fields that a Website owns. If others change them, they are repaired; all other fields
		// belong to others.
		SetOwned: func(child *appsv1.Deployment, owner *api.Website, view *plan.View) {
			if owner.Spec.Replicas != nil {
				child.Spec.Replicas = new(*owner.Spec.Replicas)
			}
			for key, value := range podLabelsOfWebsite(owner) {
				metav1.SetMetaDataLabel(&child.Spec.Template.ObjectMeta, key, value)
			}
			container := containerOfWebsite(&child.Spec.Template.Spec)
			container.Image, container.EnvFrom = options.Image, environmentOfWebsite(owner)
			view.AnnotateDigest(&child.Spec.Template.ObjectMeta, secretDigest, "Secret")
			view.AnnotateDigest(&child.Spec.Template.ObjectMeta, settingsDigest, "ConfigMap")
		},
		// What the cache keeps: the fields that SetOwned, Judge and Report read.
		Keep: func(kept, found *appsv1.Deployment) {
			kept.Spec.Replicas, kept.Spec.Selector = found.Spec.Replicas, found.Spec.Selector
			kept.Spec.Template.Labels = found.Spec.Template.Labels
			plan.KeepAnnotations(&kept.Spec.Template.ObjectMeta, &found.Spec.Template.ObjectMeta, secretDigest, settingsDigest)
			for _, container := range found.Spec.Template.Spec.Containers {
				kept.Spec.Template.Spec.Containers = append(kept.Spec.Template.Spec.Containers,
					corev1.Container{Name: container.Name, Image: plan.Truncate(container.Image, plan.MaxKept), EnvFrom: container.EnvFrom})
			}
			kept.Status = found.Status
		},
		// Whether the child does what the Website asks for.
		Judge: judgeWebsite,
		// Whether a child of an earlier name must stay until the new one is ready.
		Serves: func(child *appsv1.Deployment) bool { return child.Status.AvailableReplicas > 0 },
		// Which updates restart Pods: -max-rollouts bounds them.
		Restarts: func(before, after *appsv1.Deployment) bool {
			return before.Status.Replicas > 0 && !equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template)
		},
		// What the status says about the child, besides the conditions.
		Report: func(owner *api.Website, child *appsv1.Deployment) {
			owner.Status.Replicas, owner.Status.AvailableReplicas = child.Status.Replicas, child.Status.AvailableReplicas
			owner.Status.Selector = metav1.FormatLabelSelector(child.Spec.Selector)
		},
	}
}

// podLabelsOfWebsite returns the labels by which the Deployment selects its Pods.
func podLabelsOfWebsite(owner *api.Website) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "website", "app.kubernetes.io/instance": owner.Name}
}

// environmentOfWebsite returns where the Pods' environment comes from. Pods read it when they start.
func environmentOfWebsite(owner *api.Website) []corev1.EnvFromSource {
	from := []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: owner.Spec.Secret}}}}
	if owner.Spec.Settings != "" {
		from = append(from, corev1.EnvFromSource{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: owner.Spec.Settings}},
		})
	}
	return from
}

// containerOfWebsite returns the container that a Website owns, and adds it if it is missing.
func containerOfWebsite(pod *corev1.PodSpec) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == "main" {
			return &pod.Containers[i]
		}
	}
	pod.Containers = append(pod.Containers, corev1.Container{Name: "main"})
	return &pod.Containers[len(pod.Containers)-1]
}

// judgeWebsite returns whether a Deployment is rolled out, by the criteria of kubectl rollout status.
func judgeWebsite(child *appsv1.Deployment) plan.Readiness {
	desired, status := ptr.Deref(child.Spec.Replicas, 1), child.Status
	for _, condition := range status.Conditions {
		if status.ObservedGeneration >= child.Generation && condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse {
			return plan.Stalled("DeploymentFailed", "Deployment %q does not roll out: %s", child.Name, plan.Truncate(condition.Message, plan.MaxQuote))
		}
	}
	if status.ObservedGeneration < child.Generation || status.UpdatedReplicas != desired || status.Replicas != desired || status.AvailableReplicas != desired {
		return plan.NotReady(plan.ReasonProgressing, "Deployment %q has %d of %d Pods available", child.Name, status.AvailableReplicas, desired)
	}
	return plan.Ready("Deployment %q has %d of %d Pods available", child.Name, desired, desired)
}
