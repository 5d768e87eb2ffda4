// SPDX-License-Identifier: Apache-2.0

// The names of the files in the data folder.

package cluster

import "path/filepath"

// Layout returns the paths of the files and folders in a cluster's data folder.
type Layout struct {
	dir string
}

// NewLayout returns the layout of the folder dir, which should be an absolute path.
func NewLayout(dir string) Layout { return Layout{dir: dir} }

// Dir is the data folder itself.
func (l Layout) Dir() string { return l.dir }

// Lock is the file that a running cluster locks.
func (l Layout) Lock() string { return l.path("lock") }

// Kubeconfig is the administrator's kubeconfig, unless another path was requested.
func (l Layout) Kubeconfig() string { return l.path("kubeconfig") }

// AuditLog has a line of JSON for each write to the API.
func (l Layout) AuditLog() string { return l.path("audit.log") }

// Logs is the folder of the components' logs.
func (l Layout) Logs() string { return l.path("logs") }

// Log is the file with a component's standard output and standard error.
func (l Layout) Log(component string) string { return l.path("logs", component+".log") }

// EtcdData is etcd's data folder.
func (l Layout) EtcdData() string { return l.path("etcd") }

// Config is the folder of the files that components read when they start.
func (l Layout) Config() string { return l.path("config") }

// AuditPolicy is the audit policy of kube-apiserver.
func (l Layout) AuditPolicy() string { return l.path("config", "audit-policy.yaml") }

// KwokStages is the file of the stages that KWOK applies to nodes and Pods.
func (l Layout) KwokStages() string { return l.path("config", "kwok-stages.yaml") }

// ComponentKubeconfig is the kubeconfig of a component, with its own identity.
func (l Layout) ComponentKubeconfig(component string) string {
	return l.path("config", component+".kubeconfig")
}

// PKI is the folder of keys and certificates.
func (l Layout) PKI() string { return l.path("pki") }

// Cert is a certificate in the folder PKI.
func (l Layout) Cert(name string) string { return l.path("pki", name+".crt") }

// Key is the private key of the certificate of the same name.
func (l Layout) Key(name string) string { return l.path("pki", name+".key") }

// ServiceAccountKey is the private key that signs service account tokens.
func (l Layout) ServiceAccountKey() string { return l.path("pki", "sa.key") }

// ServiceAccountPublicKey is the public key that verifies service account tokens.
func (l Layout) ServiceAccountPublicKey() string { return l.path("pki", "sa.pub") }

func (l Layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.dir}, elem...)...)
}
