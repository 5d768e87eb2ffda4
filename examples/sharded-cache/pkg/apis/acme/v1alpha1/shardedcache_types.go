// The types of the kind ShardedCache. Their comments are the descriptions in the
// CustomResourceDefinition. After a change, run hack/update-codegen.sh.

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=shardedcaches,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Shards",type=integer,JSONPath=`.spec.shards`
// +kubebuilder:printcolumn:name="ReadyShards",type=integer,JSONPath=`.status.readyShards`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 49",message="metadata.name must be no more than 49 characters: with the number of a shard and a hash, it becomes the value of a label"

// ShardedCache describes a StatefulSet and a Service for each shard: NAME-0, NAME-1 and so on. The controller
// creates them, keeps the fields that the ShardedCache owns in line with the spec, and reports the result in the
// status. Deleting the ShardedCache deletes them.
type ShardedCache struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of any object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec ShardedCacheSpec `json:"spec"`
	// status is the state that the controller last observed. Only the controller writes it.
	// +optional
	// +kubebuilder:default={}
	Status ShardedCacheStatus `json:"status"`
}

// ShardedCacheSpec is the desired state of a ShardedCache.
type ShardedCacheSpec struct {
	// shards is the number of shards. Each has one Pod.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Shards int32 `json:"shards"`

	// memory is the size of each shard in MiB. After a change, one shard restarts at a time.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	Memory int32 `json:"memory"`

	// suspend stops, if true, all writes for the ShardedCache except to its status.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// ShardedCacheStatus is the observed state of a ShardedCache.
type ShardedCacheStatus struct {
	// observedGeneration is the metadata.generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastHandledSync is the value of the annotation acme.dev/sync-requested that the controller last acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastHandledSync string `json:"lastHandledSync,omitempty"`

	// readyShards is the number of shards that have a ready Pod.
	// +optional
	ReadyShards int32 `json:"readyShards,omitempty"`

	// conditions describe the state. Ready is Unknown until a controller has synced the ShardedCache, so that
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

// ShardedCacheList is a list of objects of the kind ShardedCache.
type ShardedCacheList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ShardedCache `json:"items"`
}
