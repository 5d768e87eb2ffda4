// SPDX-License-Identifier: Apache-2.0

// Tests of keys, certificates and kubeconfigs.

package cluster

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

// newPKI creates the keys and certificates of a new data folder.
func newPKI(t *testing.T) (Layout, *authority) {
	t.Helper()
	l := NewLayout(t.TempDir())
	if err := os.Mkdir(l.PKI(), 0o700); err != nil {
		t.Fatal(err)
	}
	ca, err := preparePKI(l)
	if err != nil {
		t.Fatal(err)
	}
	return l, ca
}

func readCert(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	certificates, err := cert.CertsFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return certificates[0]
}

func verify(t *testing.T, certificate, ca *x509.Certificate, usage x509.ExtKeyUsage, host string) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err := certificate.Verify(x509.VerifyOptions{
		Roots:       roots,
		DNSName:     host,
		KeyUsages:   []x509.ExtKeyUsage{usage},
		CurrentTime: time.Now(),
	})
	return err
}

func TestCertificates(t *testing.T) {
	l, _ := newPKI(t)
	for _, test := range []struct {
		ca, name string
		usage    x509.ExtKeyUsage
		host     string
	}{
		{clusterCA, apiServer, x509.ExtKeyUsageServerAuth, "127.0.0.1"},
		{clusterCA, ControllerManager, x509.ExtKeyUsageServerAuth, "127.0.0.1"},
		{clusterCA, Scheduler, x509.ExtKeyUsageServerAuth, "127.0.0.1"},
		{etcdCA, etcdServer, x509.ExtKeyUsageServerAuth, "127.0.0.1"},
		{etcdCA, etcdServer, x509.ExtKeyUsageClientAuth, ""},
		{etcdCA, etcdClient, x509.ExtKeyUsageClientAuth, ""},
		{frontProxyCA, frontProxyClient, x509.ExtKeyUsageClientAuth, ""},
	} {
		if err := verify(t, readCert(t, l.Cert(test.name)), readCert(t, l.Cert(test.ca)), test.usage, test.host); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestEtcdRejectsClientsOfTheAPI(t *testing.T) {
	l, ca := newPKI(t)
	admin, _, err := ca.issue(administrator())
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t, admin, readCert(t, l.Cert(clusterCA)), x509.ExtKeyUsageClientAuth, ""); err != nil {
		t.Errorf("kube-apiserver would reject the administrator: %v", err)
	}
	if err := verify(t, admin, readCert(t, l.Cert(etcdCA)), x509.ExtKeyUsageClientAuth, ""); err == nil {
		t.Error("etcd would accept the administrator")
	}
	if got := admin.Subject.Organization; len(got) != 1 || got[0] != "system:masters" {
		t.Errorf("the administrator's groups: %q", got)
	}
}

func TestRestartKeepsAuthoritiesAndServiceAccountKey(t *testing.T) {
	l, _ := newPKI(t)
	paths := []string{l.ServiceAccountKey(), l.ServiceAccountPublicKey()}
	for _, ca := range []string{clusterCA, etcdCA, frontProxyCA} {
		paths = append(paths, l.Cert(ca), l.Key(ca))
	}
	before := map[string][]byte{}
	for _, path := range paths {
		before[path] = read(t, path)
	}
	if _, err := preparePKI(l); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if !bytes.Equal(before[path], read(t, path)) {
			t.Errorf("%s has changed", path)
		}
	}
}

func TestKeysAreReadableByTheOwnerOnly(t *testing.T) {
	l, _ := newPKI(t)
	keys, err := filepath.Glob(filepath.Join(l.PKI(), "*.key"))
	if err != nil || len(keys) < 9 {
		t.Fatalf("found %d keys: %v", len(keys), err)
	}
	for _, path := range keys {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", path, info.Mode())
		}
	}
}

func TestABrokenAuthorityIsNotReplaced(t *testing.T) {
	l, _ := newPKI(t)
	if err := os.WriteFile(l.Key(clusterCA), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := preparePKI(l); err == nil {
		t.Error("an unreadable key was replaced")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const testServer = "https://127.0.0.1:1234"

func writeTestKubeconfig(t *testing.T, path string) {
	t.Helper()
	_, ca := newPKI(t)
	config, err := kubeconfig(ca, testServer, administrator())
	if err != nil {
		t.Fatal(err)
	}
	if err := writeKubeconfig(path, config); err != nil {
		t.Fatal(err)
	}
}

func TestKubeconfigTarget(t *testing.T) {
	dir := t.TempDir()
	ours, foreign, junk := filepath.Join(dir, "ours"), filepath.Join(dir, "foreign"), filepath.Join(dir, "junk")
	writeTestKubeconfig(t, ours)
	for path, content := range map[string]string{
		foreign: "apiVersion: v1\nkind: Config\nclusters:\n- name: production\n  cluster: {server: https://example.com}\n",
		junk:    "a shopping list",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ name, path, wantError string }{
		{"a new file", filepath.Join(dir, "new"), ""},
		{"one of an earlier cluster", ours, ""},
		{"one with other clusters", foreign, "was not written by devcluster"},
		{"no kubeconfig", junk, "was not written by devcluster"},
		{"a file in a folder that does not exist", filepath.Join(dir, "no", "such"), "no such file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := checkKubeconfigTarget(test.path)
			if test.wantError == "" && err != nil || test.wantError != "" && (err == nil || !strings.Contains(err.Error(), test.wantError)) {
				t.Errorf("got %v, want %q", err, test.wantError)
			}
		})
	}
}

func TestRemoveKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	writeTestKubeconfig(t, path)
	if err := removeKubeconfig(path, "https://127.0.0.1:4321"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatalf("another cluster's kubeconfig was removed: %v", err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if err := removeKubeconfig(path, testServer); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig still exists: %v", err)
	}
	if err := removeKubeconfig(path, testServer); err != nil {
		t.Errorf("removing a kubeconfig that does not exist: %v", err)
	}
}
