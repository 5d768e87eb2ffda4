// The types of the kind Tenant. Their comments are the descriptions in the
// CustomResourceDefinition. After a change, run hack/update-codegen.sh.

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=tenants,scope=Cluster,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.spec.pods`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self.metadata.name).hasValue()",message="metadata.name must be a DNS label: it becomes the name of a namespace"

// Tenant describes the Namespace of the same name, with a quota, and an entry in the namespace kube-public.
// The controller creates them, keeps the fields that the Tenant owns in line with the spec, and reports the
// result in the status. Deleting the Tenant deletes them, and all that is in the Namespace.
type Tenant struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of any object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec TenantSpec `json:"spec"`
	// status is the state that the controller last observed. Only the controller writes it.
	// +optional
	// +kubebuilder:default={}
	Status TenantStatus `json:"status"`
}

// TenantSpec is the desired state of a Tenant.
type TenantSpec struct {
	// pods is how many Pods the Namespace may have.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Pods int32 `json:"pods"`

	// contact is whom to ask about the Namespace. All users can read it. If it is unset, there is no entry.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Contact string `json:"contact,omitempty"`

	// suspend stops, if true, all writes for the Tenant except to its status.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// TenantStatus is the observed state of a Tenant.
type TenantStatus struct {
	// observedGeneration is the metadata.generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastHandledSync is the value of the annotation acme.dev/sync-requested that the controller last acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastHandledSync string `json:"lastHandledSync,omitempty"`

	// conditions describe the state. Ready is Unknown until a controller has synced the Tenant, so that
	// tools wait for it.
	// +optional
	// +kubebuilder:default={{type: "Ready", status: "Unknown", reason: "Pending", message: "Waiting for the controller", lastTransitionTime: "1970-01-01T00:00:00Z"}}
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// TenantList is a list of objects of the kind Tenant.
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Tenant `json:"items"`
}
