package v1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/renewal"
	sharedv1 "example.com/sample-controller/pkg/apis/meta/v1"
	"example.com/sample-controller/pkg/pki"
)

type (
	// Redis is a database, with templates in lists, secrets and a scale subresource. Its plural is no
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
	Replicas             *int32                         `json:"replicas,omitempty"`
	Template             corev1.PodTemplateSpec         `json:"template"`
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	// +listType=map
	// +listMapKey=name
	Jobs      []Job                                     `json:"jobs"`
	Network   *networkingv1.NetworkPolicySpec           `json:"network,omitempty"`
	Password  *corev1.SecretKeySelector                 `json:"password,omitempty"`
	Shards    map[string]Shard                          `json:"shards,omitempty"`
	Matrix    [][]string                                `json:"matrix,omitempty"`
	Raw       []byte                                    `json:"raw,omitempty"`
	Plugin    *runtime.RawExtension                     `json:"plugin,omitempty"`
	Weights   map[corev1.ResourceName]resource.Quantity `json:"weights,omitempty"`
	Surge     *intstr.IntOrString                       `json:"surge,omitempty"`
	Timeout   *metav1.Duration                          `json:"timeout,omitempty"`
	Secret    sharedv1.SecretRef                        `json:"secret,omitempty"` // of a package that several APIs share
	Algorithm pki.Algorithm                             `json:"algorithm,omitempty"`
	Key       *pki.Key                                  `json:"key,omitempty"`   // of one outside pkg/apis
	Renew     *renewal.Window                           `json:"renew,omitempty"` // and of another module
}

type Job struct {
	Name     string                  `json:"name"`
	Template batchv1.JobTemplateSpec `json:"template"`
}

type Shard struct {
	Slots []int32 `json:"slots,omitempty"`
	Node  *string `json:"node,omitempty"`
}

type RedisStatus struct {
	Replicas int32             `json:"replicas"`
	Selector string            `json:"selector,omitempty"`
	Since    *metav1.MicroTime `json:"since,omitempty"`
}
