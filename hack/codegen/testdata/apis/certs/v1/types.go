package v1

import (
	"example.com/renewal"
	"example.com/sample-controller/pkg/apis/meta/v1"
	"example.com/sample-controller/pkg/pki"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Certificate uses types of a package that several APIs share, and of one outside pkg/apis.
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:subresource:status
type Certificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CertificateSpec   `json:"spec"`
	Status            CertificateStatus `json:"status,omitempty"`
}

type CertificateSpec struct {
	Secret    v1.SecretRef            `json:"secret"`
	Authority map[string]v1.SecretRef `json:"authority,omitempty"`
	Hosts     []string                `json:"hosts,omitempty"`
	Algorithm pki.Algorithm           `json:"algorithm,omitempty"`
	Key       *pki.Key                `json:"key,omitempty"`
	Renew     *renewal.Window         `json:"renew,omitempty"`
}

type CertificateStatus struct {
	NotAfter *metav1.MicroTime `json:"notAfter,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type CertificateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Certificate `json:"items"`
}
