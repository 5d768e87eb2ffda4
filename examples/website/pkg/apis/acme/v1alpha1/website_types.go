// The types of the kind Website. Their comments are the descriptions in the
// CustomResourceDefinition. After a change, run hack/update-codegen.sh.

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=websites,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be no more than 63 characters: it becomes the value of a label"

// Website describes the Deployment and the Service of the same name in its namespace. The controller
// creates them, keeps the fields that the Website owns in line with the spec, and reports the result in the
// status. Deleting the Website deletes them.
type Website struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of any object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec WebsiteSpec `json:"spec"`
	// status is the state that the controller last observed. Only the controller writes it.
	// +optional
	// +kubebuilder:default={}
	Status WebsiteStatus `json:"status"`
}

// WebsiteSpec is the desired state of a Website.
type WebsiteSpec struct {
	// replicas is the number of Pods. If it is unset, the Deployment starts with 1, and the controller
	// never changes the number, so that an autoscaler can own it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`

	// secret is the name of the Secret whose data are the environment of the Pods, with the key "password". When it
	// changes, the Pods are replaced.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Secret string `json:"secret"`

	// settings is the name of a ConfigMap whose data are in the environment, too.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Settings string `json:"settings,omitempty"`

	// suspend stops, if true, all writes for the Website except to its status.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// WebsiteStatus is the observed state of a Website.
type WebsiteStatus struct {
	// observedGeneration is the metadata.generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastHandledSync is the value of the annotation acme.dev/sync-requested that the controller last acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastHandledSync string `json:"lastHandledSync,omitempty"`

	// replicas is the number of Pods that exist.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// availableReplicas is the number of Pods that are available.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// selector selects the Pods, for autoscalers.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`

	// conditions describe the state. Ready is Unknown until a controller has synced the Website, so that
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

// WebsiteList is a list of objects of the kind Website.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Website `json:"items"`
}
