// SPDX-License-Identifier: Apache-2.0

// Tests of certificates from files.

package serving

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	certutil "k8s.io/client-go/util/cert"
)

// writeCertificate makes a certificate for a host and returns the names of its files.
func writeCertificate(t *testing.T, folder, host string) (certFile, keyFile string) {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	write(t, certFile, certificate)
	write(t, keyFile, key)
	return certFile, keyFile
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// shown returns the host in a server's certificate.
func shown(t *testing.T, server *Server) string {
	t.Helper()
	got, err := fetch(t.Context(), "https://"+server.Address()+"/", &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	return got.tls.PeerCertificates[0].DNSNames[0]
}

func TestCertificateFilesAreReadAgainWhenTheyChange(t *testing.T) {
	// As in a Secret's volume, the files are links into a folder, and an update replaces
	// the folder's link.
	mount := t.TempDir()
	writeCertificate(t, filepath.Join(mount, "v1"), "first")
	writeCertificate(t, filepath.Join(mount, "v2"), "second")
	link(t, "v1", filepath.Join(mount, "..data"))
	certFile, keyFile := filepath.Join(mount, "tls.crt"), filepath.Join(mount, "tls.key")
	link(t, "..data/tls.crt", certFile)
	link(t, "..data/tls.key", keyFile)

	certificate, err := FromFiles(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { certificate.Watch(ctx) })
	server, _ := serve(t, secret, certificate.Config())
	if got := shown(t, server); got != "first" {
		t.Fatalf("The certificate is for %q", got)
	}

	link(t, "v2", filepath.Join(mount, "..new"))
	if err := os.Rename(filepath.Join(mount, "..new"), filepath.Join(mount, "..data")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(mount, "v1")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the second certificate", func() bool { return shown(t, server) == "second" })

	// An unusable certificate does not replace a usable one.
	write(t, filepath.Join(mount, "v2", "tls.crt"), []byte("garbage"))
	writeCertificate(t, filepath.Join(mount, "v2"), "third")
	waitFor(t, "the third certificate", func() bool {
		host := shown(t, server)
		if host != "second" && host != "third" {
			t.Fatalf("The certificate is for %q, want the last usable one", host)
		}
		return host == "third"
	})
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestAnUnusableCertificateIsReportedAtOnce(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := writeCertificate(t, folder, "host")
	_, otherKey := writeCertificate(t, filepath.Join(folder, "other"), "other")
	empty := filepath.Join(folder, "empty")
	write(t, empty, nil)
	missing := filepath.Join(folder, "missing")
	for _, test := range []struct{ what, certFile, keyFile string }{
		{"no certificate", missing, keyFile},
		{"no key", certFile, missing},
		{"an empty file", empty, keyFile},
		{"another certificate's key", certFile, otherKey},
		{"swapped", keyFile, certFile},
	} {
		if _, err := FromFiles(test.certFile, test.keyFile); err == nil || !strings.Contains(err.Error(), test.certFile) {
			t.Errorf("%s: got %v, want an error that names the files", test.what, err)
		}
	}
}
