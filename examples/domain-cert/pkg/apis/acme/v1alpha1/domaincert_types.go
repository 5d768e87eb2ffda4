// The types of the kind DomainCert. Their comments are the descriptions in the
// CustomResourceDefinition. After a change, run hack/update-codegen.sh.

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=domaincerts,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Domain",type=string,JSONPath=`.spec.domain`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.certificate.notAfter`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"

// DomainCert describes a certificate that an authority outside the cluster issues. The controller asks for it,
// has it renewed before it expires, and reports it in the status. Deleting the DomainCert revokes it.
type DomainCert struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of any object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec DomainCertSpec `json:"spec"`
	// status is the state that the controller last observed. Only the controller writes it.
	// +optional
	// +kubebuilder:default={}
	Status DomainCertStatus `json:"status"`
}

// DomainCertSpec is the desired state of a DomainCert.
type DomainCertSpec struct {
	// domain is the domain that the certificate is for.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Domain string `json:"domain"`

	// suspend stops, if true, all calls for the DomainCert, except those that revoke its certificate when it is
	// deleted.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// Certificate is what the authority says.
type Certificate struct {
	// serial identifies the certificate.
	// +optional
	Serial string `json:"serial,omitempty"`
	// notAfter is when it expires.
	// +optional
	NotAfter metav1.Time `json:"notAfter,omitzero"`
	// refusal is why the authority issues none. It is unset if there is one.
	// +optional
	Refusal string `json:"refusal,omitempty"`
}

// DomainCertStatus is the observed state of a DomainCert.
type DomainCertStatus struct {
	// observedGeneration is the metadata.generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastHandledSync is the value of the annotation acme.dev/sync-requested that the controller last acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastHandledSync string `json:"lastHandledSync,omitempty"`

	// certificate is the last answer of the authority to the newest spec.
	// +optional
	Certificate Certificate `json:"certificate,omitzero"`

	// conditions describe the state. Ready is Unknown until a controller has synced the DomainCert, so that
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

// DomainCertList is a list of objects of the kind DomainCert.
type DomainCertList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DomainCert `json:"items"`
}
