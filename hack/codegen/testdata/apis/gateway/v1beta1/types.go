package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Mesh is a gateway's route, with rules in CEL, enums and unions.
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=meshwork,shortName=mw,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.hosts[0]`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() < 60"
type Mesh struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              MeshSpec   `json:"spec"`
	Status            MeshStatus `json:"status,omitempty"`
}

// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9.-]+$`
type Hostname string

// +kubebuilder:validation:Enum=Exact;Prefix
type MatchType string

// +kubebuilder:validation:XValidation:rule="!has(oldSelf.class) || self.class == oldSelf.class",message="class can't change"
type MeshSpec struct {
	// +kubebuilder:validation:MaxLength=63
	Class string `json:"class,omitempty"`
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Hosts []Hostname `json:"hosts"`
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(r, self.exists_one(s, r.name == s.name))"
	Rules   []Rule `json:"rules,omitempty"`
	*Common `json:",inline"`
}

type Common struct {
	// +kubebuilder:default=80
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="has(self.redirect) != has(self.backend)"
type Rule struct {
	// +kubebuilder:validation:MaxLength=63
	Name     string    `json:"name"`
	Match    MatchType `json:"match,omitempty"`
	Redirect *Hostname `json:"redirect,omitempty"`
	Backend  *Backend  `json:"backend,omitempty"`
}

type Backend struct {
	Service string `json:"service"`
	Weight  *int64 `json:"weight,omitempty"`
}

type MeshStatus struct {
	Accepted *bool `json:"accepted,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type MeshList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Mesh `json:"items"`
}
