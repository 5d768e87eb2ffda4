// The kind Namespace, which isn't this program's own: the quota in it, and the security of its Pods.

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
)

const (
	// sizeLabel is the label of each Namespace that gets a quota: small, medium or large. All others are left alone.
	sizeLabel = "acme.dev/size"
	// securityLabel is the label that Kubernetes reads: which Pods it admits.
	securityLabel = "pod-security.kubernetes.io/enforce"
)

// declareNamespace puts the kind and each row of its table beside the informer and the client.
func declareNamespace(clients Clients, _ Options) *table.Kind {
	informer, client := clients.CustomInformers.Core().V1().Namespaces().Informer(), table.ClusterScoped(clients.Custom.CoreV1().Namespaces)
	return table.OfOthers(
		plan.Kind{Name: "Namespace", Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), ClusterScoped: true, Group: "acme.dev"},
		// What stands for a spec: the functions below read these fields, and no others.
		func(kept, found *corev1.Namespace) {
			if size := found.Labels[sizeLabel]; size != "" {
				kept.Labels = map[string]string{sizeLabel: size}
			}
		},
		informer, client,
		table.Sets(labelOfNamespace, informer, client),
		table.Owns(quotaOfNamespace, clients.KubeInformers.Core().V1().ResourceQuotas().Informer(), clients.Kube.CoreV1().ResourceQuotas),
	)
}

// labelOfNamespace declares the label that a Namespace with a size has. It stays when the size is removed: nobody knows
// what was there before.
var labelOfNamespace = plan.Row[*corev1.Namespace, *corev1.Namespace]{
	Kind: "Namespace", Resource: corev1.SchemeGroupVersion.WithResource("namespaces"),
	SetOwned: func(namespace, of *corev1.Namespace, _ *plan.View) {
		if of.Labels[sizeLabel] != "" {
			metav1.SetMetaDataLabel(&namespace.ObjectMeta, securityLabel, "baseline")
		}
	},
	Keep: func(kept, found *corev1.Namespace) {
		if level, ok := found.Labels[securityLabel]; ok {
			metav1.SetMetaDataLabel(&kept.ObjectMeta, securityLabel, level)
		}
	},
}

// quotaOfNamespace declares the ResourceQuota.
var quotaOfNamespace = plan.Row[*corev1.Namespace, *corev1.ResourceQuota]{
	Kind: "ResourceQuota", Resource: corev1.SchemeGroupVersion.WithResource("resourcequotas"),
	Name:      func(*corev1.Namespace) string { return "size" },
	Namespace: func(owner *corev1.Namespace) string { return owner.Name },
	// An unwanted one is deleted.
	Wanted: func(owner *corev1.Namespace) bool { return owner.Labels[sizeLabel] != "" },
	SetOwned: func(child *corev1.ResourceQuota, owner *corev1.Namespace, _ *plan.View) {
		if child.Spec.Hard == nil {
			child.Spec.Hard = corev1.ResourceList{}
		}
		child.Spec.Hard[corev1.ResourcePods] = *resource.NewQuantity(podsFor(owner.Labels[sizeLabel]), resource.DecimalSI)
	},
	Keep: func(kept, found *corev1.ResourceQuota) {
		if pods, ok := found.Spec.Hard[corev1.ResourcePods]; ok {
			kept.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: pods}
		}
	},
}

// podsFor returns how many Pods a Namespace of a size may have. A size that nobody has defined counts as small.
func podsFor(size string) int64 {
	switch size {
	case "large":
		return 200
	case "medium":
		return 50
	}
	return 10
}
