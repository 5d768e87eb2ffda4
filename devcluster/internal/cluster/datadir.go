// SPDX-License-Identifier: Apache-2.0

// The data directory: creating, locking and removing it, its layout, and the keys, certificates and
// kubeconfigs in it.

package cluster

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// dataDir is a data directory that this process has locked.
type dataDir struct {
	layout
	lock *os.File
	// fresh is true if the directory was empty: there is no data of an earlier cluster to
	// lose.
	fresh bool
}

// openDataDir creates the directory if it does not exist, or a temporary one for "", and
// locks it. It refuses a directory with other files in it, because the contents of a data
// directory are removed later.
func openDataDir(path string) (*dataDir, error) {
	var err error
	if path == "" {
		path, err = os.MkdirTemp("", "devcluster-")
	} else if path, err = filepath.Abs(path); err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("-data-dir: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("-data-dir: %w", err)
	}
	d := &dataDir{layout: layout(path), fresh: len(entries) == 0}
	if _, err := os.Stat(d.lockFile()); errors.Is(err, fs.ErrNotExist) && !d.fresh {
		return nil, fmt.Errorf("-data-dir %s: the directory is not empty and was not created by devcluster; choose another", path)
	}
	if err := d.acquire(); err != nil {
		return nil, err
	}
	return d, nil
}

// acquire locks the directory for the life of this process. The kernel releases the lock however
// the process ends.
func (d *dataDir) acquire() error {
	f, err := os.OpenFile(d.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("-data-dir: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := os.ReadFile(d.lockFile()) // only for the message
		_ = f.Close()
		return fmt.Errorf("-data-dir %s: in use by a running devcluster (process %s)", d.dir(), bytes.TrimSpace(holder))
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("locking %s: %w", d.lockFile(), err)
	}
	d.lock = f
	return nil
}

// used reports whether a cluster has run in this directory before.
func (d *dataDir) used() bool {
	_, err := os.Stat(d.etcdData())
	return err == nil
}

// remove removes the files of a cluster from the directory, and the directory if it is then
// empty. With keepLogs, it leaves the logs, and the directory with them.
func (d *dataDir) remove(keepLogs bool) error {
	paths := []string{d.etcdData(), d.config(), d.pki(), d.adminKubeconfig()}
	if !keepLogs {
		entries, err := os.ReadDir(d.dir())
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), "audit") { // including rotated ones: audit-<time>.log
				paths = append(paths, d.path(entry.Name()))
			}
		}
		paths = append(paths, d.logs(), d.lockFile())
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, os.RemoveAll(path))
	}
	if !keepLogs {
		// A user's file in the directory keeps the directory.
		if err := os.Remove(d.dir()); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// release unlocks the directory.
func (d *dataDir) release() { _ = d.lock.Close() }

// layout is the absolute path of a data directory, and knows the files and directories in it.
type layout string

func (l layout) path(elem ...string) string {
	return filepath.Join(append([]string{string(l)}, elem...)...)
}

func (l layout) dir() string                     { return string(l) }
func (l layout) lockFile() string                { return l.path("lock") }                        // of a running cluster
func (l layout) adminKubeconfig() string         { return l.path("kubeconfig") }                  // the administrator's
func (l layout) auditLog() string                { return l.path("audit.log") }                   // writes to the API
func (l layout) logs() string                    { return l.path("logs") }                        // of the components
func (l layout) etcdData() string                { return l.path("etcd") }                        // etcd's data directory
func (l layout) config() string                  { return l.path("config") }                      // of the components
func (l layout) auditPolicy() string             { return l.path("config", "audit-policy.yaml") } // of kube-apiserver
func (l layout) kwokStages() string              { return l.path("config", "kwok-stages.yaml") }  // for nodes and Pods
func (l layout) pki() string                     { return l.path("pki") }                         // keys
func (l layout) serviceAccountKey() string       { return l.path("pki", "sa.key") }               // signs tokens
func (l layout) serviceAccountPublicKey() string { return l.path("pki", "sa.pub") }               // verifies them

// log is the file with a component's standard output and standard error.
func (l layout) log(component string) string { return l.path("logs", component+".log") }

// componentKubeconfig is the kubeconfig of a component, with its own identity.
func (l layout) componentKubeconfig(component string) string {
	return l.path("config", component+".kubeconfig")
}

// cert is a certificate, and key the private key of that name.
func (l layout) cert(name string) string { return l.path("pki", name+".crt") }
func (l layout) key(name string) string  { return l.path("pki", name+".key") }

// Names of keys and certificates in the directory PKI.
const (
	clusterCA = "ca"      // signs kube-apiserver, its clients, and the serving certificates of kube-controller-manager and kube-scheduler
	etcdCA    = "etcd-ca" // signs etcd and its only client, so that clients of the API are not clients of etcd

	apiServer  = "kube-apiserver"
	etcdServer = "etcd"
	etcdClient = "kube-apiserver-etcd-client"

	serviceAccount = "sa" // signs and verifies the tokens of service accounts
)

// leafLifetime is long enough, because all certificates except the authorities' are created at each
// start.
const leafLifetime = 365 * 24 * time.Hour

// authority is a certificate with the key to sign others.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// preparePKI creates the files of the directory PKI. It keeps existing authorities and the
// service account key, so that kubeconfigs and tokens from an earlier run with the same
// data directory stay valid, and creates all other files at each start. It returns the
// authority that signs clients of the API.
func preparePKI(l layout) (*authority, error) {
	authorities := map[string]*authority{}
	for _, name := range []string{clusterCA, etcdCA} {
		ca, err := loadOrCreateAuthority(l, name)
		if err != nil {
			return nil, fmt.Errorf("preparing the certificate authority %s: %w", name, err)
		}
		authorities[name] = ca
	}
	if err := ensureServiceAccountKey(l); err != nil {
		return nil, fmt.Errorf("preparing the service account key: %w", err)
	}
	leaves := []struct{ ca, name, commonName string }{
		{clusterCA, apiServer, "kube-apiserver"},
		{clusterCA, ControllerManager, ControllerManager},
		{clusterCA, Scheduler, Scheduler},
		{etcdCA, etcdServer, "etcd"},
		{etcdCA, etcdClient, "kube-apiserver"},
	}
	for _, leaf := range leaves {
		certificate, key, err := authorities[leaf.ca].issue(leaf.commonName)
		if err == nil {
			err = pkiutil.WriteCertAndKey(l.pki(), leaf.name, certificate, key)
		}
		if err != nil {
			return nil, fmt.Errorf("creating the certificate %s: %w", leaf.name, err)
		}
	}
	return authorities[clusterCA], nil
}

func loadOrCreateAuthority(l layout, name string) (*authority, error) {
	if pkiutil.CertOrKeyExist(l.pki(), name) {
		certificate, key, err := pkiutil.TryLoadCertAndKeyFromDisk(l.pki(), name)
		return &authority{certificate, key}, err
	}
	certificate, key, err := pkiutil.NewCertificateAuthority(&pkiutil.CertConfig{
		Config: cert.Config{CommonName: "devcluster-" + name}, EncryptionAlgorithm: kubeadm.EncryptionAlgorithmECDSAP256,
	})
	if err != nil {
		return nil, err
	}
	return &authority{certificate, key}, pkiutil.WriteCertAndKey(l.pki(), name, certificate, key)
}

// issue returns a new certificate, for a client and for a server on this machine, and its
// key. The groups apply to a client.
func (a *authority) issue(name string, groups ...string) (*x509.Certificate, crypto.Signer, error) {
	return pkiutil.NewCertAndKey(a.cert, a.key, &pkiutil.CertConfig{
		Config: cert.Config{
			CommonName: name, Organization: groups,
			Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			AltNames: cert.AltNames{
				DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
				IPs:      []net.IP{net.ParseIP(loopback)},
			},
		},
		NotAfter: time.Now().Add(leafLifetime), EncryptionAlgorithm: kubeadm.EncryptionAlgorithmECDSAP256,
	})
}

// ensureServiceAccountKey creates the keys that sign and verify service account tokens.
// It keeps existing keys, because tokens must stay valid over a restart.
func ensureServiceAccountKey(l layout) error {
	if pkiutil.CertOrKeyExist(l.pki(), serviceAccount) {
		_, _, err := pkiutil.TryLoadPrivatePublicKeyFromDisk(l.pki(), serviceAccount)
		return err
	}
	key, err := pkiutil.GeneratePrivateKey(kubeadm.EncryptionAlgorithmECDSAP256)
	if err != nil {
		return err
	}
	return errors.Join(pkiutil.WriteKey(l.pki(), serviceAccount, key), pkiutil.WritePublicKey(l.pki(), serviceAccount, key.Public()))
}

// contextName is the name of the cluster, the user and the context in each kubeconfig.
const contextName = "devcluster"

// The user and the group of the administrator. kube-apiserver allows everything to the
// group.
const (
	adminUser  = "devcluster-admin"
	adminGroup = "system:masters"
)

// componentUsers are the components' users. Kubernetes' bootstrap roles, and kwokRole, grant
// them the permissions that they need.
func componentUsers() map[string]string {
	return map[string]string{
		ControllerManager: "system:kube-controller-manager", Scheduler: "system:kube-scheduler", Kwok: kwokUser,
	}
}

// kubeconfig returns a kubeconfig for a user, with a new client certificate in it.
func kubeconfig(ca *authority, server, user string, groups ...string) (*clientcmdapi.Config, error) {
	certificate, key, err := ca.issue(user, groups...)
	if err != nil {
		return nil, fmt.Errorf("creating the client certificate of %s: %w", user, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: pkiutil.EncodeCertPEM(ca.cert)}
	config.AuthInfos[contextName] = &clientcmdapi.AuthInfo{ClientCertificateData: pkiutil.EncodeCertPEM(certificate), ClientKeyData: keyPEM}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	config.CurrentContext = contextName
	return config, nil
}

// writeKubeconfig writes a kubeconfig atomically, readable by the owner only.
func writeKubeconfig(path string, config *clientcmdapi.Config) error {
	draft := path + ".new"
	err := clientcmd.WriteToFile(*config, draft)
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		_ = os.Remove(draft)
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}
