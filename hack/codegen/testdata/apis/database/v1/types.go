package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type (
	// Redis is a database, with claim templates, secrets and a scale subresource. Its plural is no
	// regular one, and the kind is declared in a block.
	// +kubebuilder:subresource:status
	// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
	// +genclient
	// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
	// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
	// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
	Redis struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              RedisSpec   `json:"spec"`
		Status            RedisStatus `json:"status,omitempty"`
	}

	// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
	RedisList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []Redis `json:"items"`
	}
)

type RedisSpec struct {
	Replicas             *int32                                    `json:"replicas,omitempty"`
	Template             corev1.PodTemplateSpec                    `json:"template"`
	VolumeClaimTemplates []corev1.PersistentVolumeClaim            `json:"volumeClaimTemplates,omitempty"`
	Password             *corev1.SecretKeySelector                 `json:"password,omitempty"`
	Memory               resource.Quantity                         `json:"memory,omitempty"`
	Shards               map[string]Shard                          `json:"shards,omitempty"`
	Retention            corev1.PersistentVolumeReclaimPolicy      `json:"retention,omitempty"`
	Init                 corev1.EnvFromSource                      `json:"init,omitempty"`
	Labels               corev1.LocalObjectReference               `json:"labels,omitempty"`
	Raw                  []byte                                    `json:"raw,omitempty"`
	Weights              map[corev1.ResourceName]resource.Quantity `json:"weights,omitempty"`
}

type Shard struct {
	Slots []int32 `json:"slots,omitempty"`
	Node  *string `json:"node,omitempty"`
}

type RedisStatus struct {
	Replicas int32        `json:"replicas"`
	Selector string       `json:"selector,omitempty"`
	Since    *metav1.Time `json:"since,omitempty"`
}
