/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deploymentName`,description="Name of the Deployment that the Foo asks for"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Number of Pods that the Foo asks for; empty when it leaves the number to others"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Number of Pods that are available"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the Deployment is as the Foo asks and all its Pods are available"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the Foo is ready or not"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, experimental-only; please get an approval from Kubernetes API reviewers if you're trying to develop a CRD in the *.k8s.io or *.kubernetes.io groups"
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/prune=disabled"
// +kubebuilder:metadata:annotations="argocd.argoproj.io/sync-options=Prune=false,Delete=false"
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be no more than 63 characters: it becomes the value of a Pod label"

// Foo asks for one Deployment of nginx in its own namespace. The controller
// creates that Deployment, owns it (a controller reference), keeps the fields
// that the Foo names as they are here, and reports its state in the status.
// Deleting the Foo deletes the Deployment.
//
// A Foo's name has at most 63 characters, because it becomes the value of the
// label "controller" on the Deployment's Pods.
type Foo struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants.
	// +required
	Spec FooSpec `json:"spec"`
	// Status is what the controller last saw. Only the controller writes it,
	// through the status subresource.
	// +optional
	Status FooStatus `json:"status"`
}

// FooSpec is the state that a user asks for.
type FooSpec struct {
	// DeploymentName is the name of the Deployment, in the Foo's namespace: a
	// DNS-1123 subdomain (lower-case letters, digits, '-' and '.') of 1 to 253
	// characters. A Deployment that exists under this name and is not
	// controlled by this Foo is left alone.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a DNS-1123 subdomain: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit (for example 'web-1')"
	DeploymentName string `json:"deploymentName"`

	// Replicas is the number of Pods that the Deployment should run, from 1
	// to 10. Left out, the Deployment's number belongs to others: it starts
	// as 1 and the controller never changes it, so an autoscaler can own it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Replicas *int32 `json:"replicas,omitempty"`
}

// FooStatus is the state that the controller last saw.
type FooStatus struct {
	// ObservedGeneration is the metadata.generation of the Foo that the rest
	// of the status was made from. While it is lower than metadata.generation
	// the status speaks of an older spec.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Replicas is the number of the Deployment's Pods that exist and are not
	// terminating, as the Deployment reports it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Replicas int32 `json:"replicas,omitempty"`

	// AvailableReplicas is the number of the Deployment's Pods that have been
	// ready for at least its minReadySeconds, as the Deployment reports it;
	// 0 while there is no Deployment that this Foo controls.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	AvailableReplicas int32 `json:"availableReplicas"`

	// Selector is the label selector of the Deployment's Pods, in the string
	// form that a list request takes. An autoscaler that targets the Foo finds
	// the Pods with it, through the scale subresource. It is left out where it
	// would have more than 4096 characters, as that of an adopted Deployment may.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`

	// Conditions say how the Foo stands. Type Ready is always there once the
	// controller has seen the Foo; its reasons are the Reason constants of
	// this package.
	//
	// A condition's lastTransitionTime is one that Go reads as RFC 3339, such as
	// 2026-11-21T12:00:00Z, from 0001-01-01T00:00:01Z to 9999-12-31T23:59:59Z.
	// Anything else is refused: no client could read it.
	// +optional
	// +kubebuilder:validation:items:XValidation:rule="self.lastTransitionTime >= timestamp('0001-01-01T00:00:01Z') && self.lastTransitionTime <= timestamp('9999-12-31T23:59:59Z')",fieldPath=".lastTransitionTime",message="must be a time like 2026-11-21T12:00:00Z, from 0001-01-01T00:00:01Z to 9999-12-31T23:59:59Z"
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// FooList is a list of Foos, as the API server returns it.
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Foos, in no promised order.
	Items []Foo `json:"items"`
}
