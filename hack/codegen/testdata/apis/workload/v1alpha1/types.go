package v1alpha1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// JobGroup runs Jobs together, as a batch controller does: its templates are in a list.
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:subresource:status
type JobGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              JobGroupSpec   `json:"spec"`
	Status            JobGroupStatus `json:"status,omitempty"`
}

type JobGroupSpec struct {
	// +listType=map
	// +listMapKey=name
	Jobs           []ReplicatedJob       `json:"jobs"`
	MaxUnavailable *intstr.IntOrString   `json:"maxUnavailable,omitempty"`
	Selector       *metav1.LabelSelector `json:"selector,omitempty"`
	Timeout        *metav1.Duration      `json:"timeout,omitempty"`
	Plugin         *runtime.RawExtension `json:"plugin,omitempty"`
	Matrix         [][]string            `json:"matrix,omitempty"`
	Coordinator    *ReplicatedJob        `json:"coordinator,omitempty"`
}

type ReplicatedJob struct {
	Name     string                  `json:"name"`
	Replicas int32                   `json:"replicas"`
	Template batchv1.JobTemplateSpec `json:"template"`
}

type JobGroupStatus struct {
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition       `json:"conditions,omitempty"`
	Active     []corev1.ObjectReference `json:"active,omitempty"`
	Ready      map[string]int32         `json:"ready,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type JobGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []JobGroup `json:"items"`
}
