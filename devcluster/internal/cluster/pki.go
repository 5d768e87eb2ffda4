// SPDX-License-Identifier: Apache-2.0

// Keys, certificates and kubeconfigs.

package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Names of keys and certificates in the folder PKI.
const (
	clusterCA    = "ca"             // signs kube-apiserver, its clients, and the serving certificates of kube-controller-manager and kube-scheduler
	etcdCA       = "etcd-ca"        // signs etcd and its only client, so that clients of the API are not clients of etcd
	frontProxyCA = "front-proxy-ca" // signs kube-apiserver as a client of aggregated API servers

	apiServer        = "kube-apiserver"
	etcdServer       = "etcd"
	etcdClient       = "kube-apiserver-etcd-client"
	frontProxyClient = "front-proxy-client"
)

// backdate makes a certificate valid for a clock that is slightly behind. leafLifetime is
// long enough, because all certificates except those of the authorities are created at
// each start.
const (
	backdate     = 5 * time.Minute
	leafLifetime = 365 * 24 * time.Hour
)

// authority is a certificate with the key to sign others.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// identity is the subject of a certificate.
type identity struct {
	commonName   string
	organization []string
}

// preparePKI creates the files of the folder PKI. It keeps existing authorities and the
// service account key, so that kubeconfigs and tokens from an earlier run with the same
// data folder stay valid, and creates all other files at each start. It returns the
// authority that signs clients of the API.
func preparePKI(l Layout) (*authority, error) {
	authorities := map[string]*authority{}
	for _, name := range []string{clusterCA, etcdCA, frontProxyCA} {
		ca, err := loadOrCreateAuthority(l, name)
		if err != nil {
			return nil, err
		}
		authorities[name] = ca
	}
	if err := ensureServiceAccountKey(l); err != nil {
		return nil, err
	}
	leaves := []struct{ ca, name, commonName string }{
		{clusterCA, apiServer, "kube-apiserver"},
		{clusterCA, ControllerManager, ControllerManager},
		{clusterCA, Scheduler, Scheduler},
		{etcdCA, etcdServer, "etcd"},
		{etcdCA, etcdClient, "kube-apiserver"},
		{frontProxyCA, frontProxyClient, frontProxyClient},
	}
	for _, leaf := range leaves {
		certPEM, keyPEM, err := authorities[leaf.ca].issue(identity{commonName: leaf.commonName})
		if err != nil {
			return nil, fmt.Errorf("creating the certificate %s: %w", leaf.name, err)
		}
		if err := writePair(l, leaf.name, certPEM, keyPEM); err != nil {
			return nil, err
		}
	}
	return authorities[clusterCA], nil
}

func loadOrCreateAuthority(l Layout, name string) (*authority, error) {
	ca, err := loadAuthority(l, name)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return ca, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{
		CommonName: "devcluster-" + name,
		NotBefore:  time.Now().Add(-backdate),
	}, key)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate authority %s: %w", name, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	certPEM, err := cert.EncodeCertificates(certificate)
	if err != nil {
		return nil, err
	}
	return &authority{cert: certificate, key: key}, writePair(l, name, certPEM, keyPEM)
}

func loadAuthority(l Layout, name string) (*authority, error) {
	certificates, err := cert.CertsFromFile(l.Cert(name))
	if err != nil {
		return nil, err
	}
	key, err := keyutil.PrivateKeyFromFile(l.Key(name))
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: the key can't sign", l.Key(name))
	}
	return &authority{cert: certificates[0], key: signer}, nil
}

// issue returns a new certificate, for a client and for a server on this machine, and its
// key, both as PEM.
func (a *authority) issue(id identity) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.commonName, Organization: id.organization},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(leafLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:  []net.IP{net.ParseIP(loopback)},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), keyPEM, nil
}

// ensureServiceAccountKey creates the keys that sign and verify service account tokens.
// It keeps existing keys, because tokens must stay valid over a restart.
func ensureServiceAccountKey(l Layout) error {
	if _, _, err := keyutil.LoadOrGenerateKeyFile(l.ServiceAccountKey()); err != nil {
		return fmt.Errorf("creating the service account key: %w", err)
	}
	key, err := keyutil.PrivateKeyFromFile(l.ServiceAccountKey())
	if err != nil {
		return err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return fmt.Errorf("%s: the key can't sign", l.ServiceAccountKey())
	}
	der, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: der})
	return os.WriteFile(l.ServiceAccountPublicKey(), public, 0o600)
}

func writePair(l Layout, name string, certPEM, keyPEM []byte) error {
	if err := os.WriteFile(l.Key(name), keyPEM, 0o600); err != nil {
		return err
	}
	return os.WriteFile(l.Cert(name), certPEM, 0o600)
}

// contextName is the name of the cluster, the user and the context in each kubeconfig.
const contextName = "devcluster"

// administrator is the identity of the cluster's user: kube-apiserver allows everything
// to the group system:masters.
func administrator() identity {
	return identity{commonName: "devcluster-admin", organization: []string{"system:masters"}}
}

// componentUsers are the components' identities. Kubernetes' bootstrap roles, and
// kwokRole, grant them the permissions that they need.
func componentUsers() map[string]identity {
	return map[string]identity{
		ControllerManager: {commonName: "system:kube-controller-manager"},
		Scheduler:         {commonName: "system:kube-scheduler"},
		Kwok:              {commonName: kwokUser},
	}
}

// kubeconfig returns a kubeconfig for a user, with a new client certificate in it.
func kubeconfig(ca *authority, server string, user identity) (*clientcmdapi.Config, error) {
	certPEM, keyPEM, err := ca.issue(user)
	if err != nil {
		return nil, fmt.Errorf("creating the client certificate of %s: %w", user.commonName, err)
	}
	caPEM, err := cert.EncodeCertificates(ca.cert)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caPEM}
	config.AuthInfos[contextName] = &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	config.CurrentContext = contextName
	return config, nil
}

// writeKubeconfig writes a kubeconfig atomically, readable by the owner only.
func writeKubeconfig(path string, config *clientcmdapi.Config) error {
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-")
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// checkKubeconfigTarget refuses to overwrite a file that devcluster did not write.
func checkKubeconfigTarget(path string) error {
	config, err := clientcmd.LoadFromFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return fmt.Errorf("-kubeconfig %s: %w", path, err)
		}
		return nil
	case err != nil || !isOurs(config):
		return fmt.Errorf("-kubeconfig %s: the file exists and was not written by devcluster; choose another", path)
	}
	return nil
}

func isOurs(config *clientcmdapi.Config) bool {
	_, ok := config.Clusters[contextName]
	return ok && len(config.Clusters) == 1 && len(config.AuthInfos) == 1 && len(config.Contexts) == 1
}

// removeKubeconfig removes the file unless another cluster has overwritten it since.
func removeKubeconfig(path, server string) error {
	config, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !isOurs(config) || config.Clusters[contextName].Server != server {
		return nil
	}
	return os.Remove(path)
}
