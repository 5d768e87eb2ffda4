package v1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tenant is cluster-scoped.
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TenantSpec   `json:"spec"`
	Status            TenantStatus `json:"status,omitempty"`
}

type TenantSpec struct {
	Quota     *corev1.ResourceQuotaSpec           `json:"quota,omitempty"`
	Limits    []corev1.LimitRangeItem             `json:"limits,omitempty"`
	Rules     []rbacv1.PolicyRule                 `json:"rules,omitempty"`
	Subjects  []rbacv1.Subject                    `json:"subjects,omitempty"`
	Network   *networkingv1.NetworkPolicySpec     `json:"network,omitempty"`
	Ingress   map[string]networkingv1.IngressRule `json:"ingress,omitempty"`
	Namespace metav1.ObjectMeta                   `json:"namespace,omitempty"`
}

type TenantStatus struct {
	Namespaces []string `json:"namespaces,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Tenant `json:"items"`
}
