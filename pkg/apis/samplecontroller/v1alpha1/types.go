// SPDX-License-Identifier: Apache-2.0

// The types of the API. Their comments are the descriptions in the
// CustomResourceDefinition.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=fo,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:selectablefield:JSONPath=`.spec.deploymentName`
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deploymentName`,description="Name of the Foo's Deployment"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Desired number of Pods; empty if the Foo does not set it"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Number of Pods that are available"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the Deployment is in its desired state and all its Pods are available"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the Foo is ready or not"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, experimental-only; please get an approval from Kubernetes API reviewers if you're trying to develop a CRD in the *.k8s.io or *.kubernetes.io groups"
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/prune=disabled"
// +kubebuilder:metadata:annotations="argocd.argoproj.io/sync-options=Prune=false,Delete=false"
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63",optionalOldSelf=true,message="metadata.name must be no more than 63 characters: it becomes the value of a Pod label"

// Foo describes a Deployment of nginx in its namespace. The controller creates the
// Deployment with a controller reference to the Foo, keeps the fields that the Foo owns
// in line with the Foo's spec, and reports the state in the Foo's status. Deleting the
// Foo deletes the Deployment.
//
// A Foo's name has at most 63 characters, because it is the value of the label
// "controller" on the Deployment's Pods.
type Foo struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of any object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec FooSpec `json:"spec"`
	// status is the state that the controller last observed. Only the controller writes
	// it, through the status subresource.
	// +optional
	// +kubebuilder:default={}
	Status FooStatus `json:"status"`
}

// FooSpec is the desired state of a Foo.
type FooSpec struct {
	// deploymentName is the name of the Deployment in the Foo's namespace: a DNS-1123
	// subdomain (lower-case letters, digits, '-' and '.') of 1 to 253 characters. If a
	// Deployment with this name exists that this Foo does not control, the controller
	// does not change it unless the Deployment requests adoption.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a DNS-1123 subdomain: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit (for example 'web-1')"
	DeploymentName string `json:"deploymentName"`

	// suspend stops, if true, all writes for the Foo except to its status: its Deployment
	// is not created, changed, adopted or deleted until suspend is false or unset. Running
	// Pods keep running. Deleting the Foo still deletes the Deployment.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// replicas is the number of Pods that the Deployment runs, from 1 to 10. If it is
	// unset, the Deployment starts with 1, or with the number of the Deployment that it
	// replaces, and the controller never changes the number, so that an autoscaler of the
	// Deployment can own it. Set it if an autoscaler targets the Foo.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Replicas *int32 `json:"replicas,omitempty"`
}

// FooStatus is the observed state of a Foo.
type FooStatus struct {
	// observedGeneration is the metadata.generation of the Foo that the status describes.
	// If it is lower than metadata.generation, the status describes an older spec.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastHandledSync is the value of the annotation samplecontroller.k8s.io/sync-requested that
	// the controller last acted on: it has synced the Foo since, without waiting for the end of
	// a back-off. It is unset if there was none.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastHandledSync string `json:"lastHandledSync,omitempty"`

	// replicas is the number of the Deployment's Pods that exist and are not terminating,
	// as reported by the Deployment.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Replicas int32 `json:"replicas,omitempty"`

	// availableReplicas is the number of the Deployment's Pods that have been ready for
	// at least its minReadySeconds, as reported by the Deployment. It is 0 while the Foo
	// controls no Deployment.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	AvailableReplicas int32 `json:"availableReplicas"`

	// selector is the label selector of the Deployment's Pods, in the string form that
	// list requests use. An autoscaler that targets the Foo uses it to find the Pods,
	// through the scale subresource. It is unset if it would exceed 4096 characters,
	// or 64 labels, expressions and values, as may happen after an adoption.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`

	// conditions describe the state of the Foo. By default, the API server sets the
	// condition Ready to Unknown with the reason Pending, so that tools do not take a Foo
	// that no controller has synced for one at rest. The Reason constants of this package
	// are the reasons of Ready.
	//
	// A condition's lastTransitionTime is an RFC 3339 time that Go can parse, such as
	// 2026-11-21T12:00:00Z, from 0001-01-01T00:00:01Z to 9999-12-31T23:59:59Z. The API
	// server refuses other values, because Go clients could not read them.
	// +optional
	// +kubebuilder:validation:items:XValidation:rule="self.lastTransitionTime >= timestamp('0001-01-01T00:00:01Z') && self.lastTransitionTime <= timestamp('9999-12-31T23:59:59Z')",fieldPath=".lastTransitionTime",message="must be a time like 2026-11-21T12:00:00Z, from 0001-01-01T00:00:01Z to 9999-12-31T23:59:59Z"
	// +kubebuilder:default={{type: "Ready", status: "Unknown", reason: "Pending", message: "Waiting for the controller", lastTransitionTime: "1970-01-01T00:00:00Z"}}
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// FooList is a list of Foos.
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Foos, in no particular order.
	Items []Foo `json:"items"`
}
