// The kind Tenant, which is cluster-scoped: a Namespace, the quota in it, and an entry in a namespace that exists.

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "example.com/acme/pkg/apis/acme/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
)

// declareTenant puts the kind and each row of its table beside the informer and the client.
func declareTenant(clients Clients, _ Options) *table.Kind {
	core, in := clients.KubeInformers.Core().V1(), clients.Kube.CoreV1()
	return table.Of(
		plan.Kind{Name: "Tenant", Resource: api.SchemeGroupVersion.WithResource("tenants"), ClusterScoped: true},
		clients.CustomInformers.Acme().V1alpha1().Tenants().Informer(), table.ClusterScoped(clients.Custom.AcmeV1alpha1().Tenants),
		table.Owns(namespaceOfTenant, core.Namespaces().Informer(), table.ClusterScoped(in.Namespaces)),
		table.Owns(quotaOfTenant, core.ResourceQuotas().Informer(), in.ResourceQuotas),
		table.Owns(entryOfTenant, core.ConfigMaps().Informer(), in.ConfigMaps),
	)
}

// tenantLabel is the label of the Namespace.
const tenantLabel = "acme.dev/tenant"

// namespaceOfTenant declares the Namespace. One that exists is not taken, unless someone hands it over.
var namespaceOfTenant = plan.Row[*api.Tenant, *corev1.Namespace]{
	Kind: "Namespace", Resource: corev1.SchemeGroupVersion.WithResource("namespaces"),
	Name:      func(owner *api.Tenant) string { return owner.Name },
	Namespace: func(*api.Tenant) string { return metav1.NamespaceNone },
	// What is in it has to wait for it.
	Blocks: true,
	SetOwned: func(child *corev1.Namespace, owner *api.Tenant, _ *plan.View) {
		metav1.SetMetaDataLabel(&child.ObjectMeta, tenantLabel, owner.Name)
	},
	Keep: func(kept, found *corev1.Namespace) {
		if tenant, ok := found.Labels[tenantLabel]; ok {
			metav1.SetMetaDataLabel(&kept.ObjectMeta, tenantLabel, tenant)
		}
	},
}

// quotaOfTenant declares the ResourceQuota.
var quotaOfTenant = plan.Row[*api.Tenant, *corev1.ResourceQuota]{
	Kind: "ResourceQuota", Resource: corev1.SchemeGroupVersion.WithResource("resourcequotas"),
	Name:      func(*api.Tenant) string { return "tenant" },
	Namespace: func(owner *api.Tenant) string { return owner.Name },
	SetOwned: func(child *corev1.ResourceQuota, owner *api.Tenant, _ *plan.View) {
		if child.Spec.Hard == nil {
			child.Spec.Hard = corev1.ResourceList{}
		}
		child.Spec.Hard[corev1.ResourcePods] = *resource.NewQuantity(int64(owner.Spec.Pods), resource.DecimalSI)
	},
	Keep: func(kept, found *corev1.ResourceQuota) {
		kept.Spec.Hard, kept.Status.Hard = podsOf(found.Spec.Hard), podsOf(found.Status.Hard)
	},
	Judge: func(child *corev1.ResourceQuota) plan.Readiness {
		if wanted := child.Spec.Hard.Pods(); child.Status.Hard.Pods().Cmp(*wanted) != 0 {
			return plan.NotReady(plan.ReasonProgressing, "ResourceQuota %q is not in force yet", child.Name)
		}
		return plan.Ready("ResourceQuota %q is in force", child.Name)
	},
}

// podsOf returns the part of a list that is about Pods.
func podsOf(list corev1.ResourceList) corev1.ResourceList {
	if pods, ok := list[corev1.ResourcePods]; ok {
		return corev1.ResourceList{corev1.ResourcePods: pods}
	}
	return nil
}

// entryOfTenant declares the ConfigMap with which everyone finds out whose a Namespace is.
var entryOfTenant = plan.Row[*api.Tenant, *corev1.ConfigMap]{
	Kind: "ConfigMap", Resource: corev1.SchemeGroupVersion.WithResource("configmaps"),
	Name:      func(owner *api.Tenant) string { return "tenant-" + owner.Name },
	Namespace: func(*api.Tenant) string { return metav1.NamespacePublic },
	Wanted:    func(owner *api.Tenant) bool { return owner.Spec.Contact != "" },
	SetOwned: func(child *corev1.ConfigMap, owner *api.Tenant, _ *plan.View) {
		if child.Data == nil {
			child.Data = map[string]string{}
		}
		child.Data["contact"] = owner.Spec.Contact
	},
	Keep: func(kept, found *corev1.ConfigMap) {
		if contact, ok := found.Data["contact"]; ok {
			kept.Data = map[string]string{"contact": plan.Truncate(contact, plan.MaxKept)}
		}
	},
}
