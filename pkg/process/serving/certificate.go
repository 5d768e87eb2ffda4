// SPDX-License-Identifier: Apache-2.0

// A server's certificate: self-signed, or from files that are reloaded.

package serving

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

// rereadAfter is how long a server uses a certificate before it rereads the files.
const rereadAfter = 10 * time.Second

// SelfSigned returns the TLS configuration for Listen with a self-signed certificate, which
// is kept only in memory. It allows encryption but does not authenticate the server. Its key
// uses P-256, because anyone may begin a handshake, and RSA takes four times the CPU.
func SelfSigned() (*tls.Config, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	// Valid from an hour ago, for clients whose clocks are behind.
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: host, NotBefore: time.Now().Add(-time.Hour)}, key)
	if err != nil {
		return nil, fmt.Errorf("generating a certificate: %w", err)
	}
	config := baseConfig()
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}}
	return config, nil
}

// FromFiles returns the TLS configuration for Listen with the key and certificate from files;
// the certificate's issuers follow it. Connections opened 10 s or more after the files have
// changed use the new certificate, if it is valid.
func FromFiles(certFile, keyFile string) (*tls.Config, error) {
	read := func() (*tls.Certificate, error) {
		certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate %s with the key %s: %w", certFile, keyFile, err)
		}
		return &certificate, nil
	}
	current, err := read()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	readAt := time.Now()
	config := baseConfig()
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(readAt) >= rereadAfter {
			readAt = time.Now()
			if newer, err := read(); err == nil {
				current = newer
			} else {
				klog.FromContext(hello.Context()).Error(err, "Keeping the previous certificate")
			}
		}
		return current, nil
	}
	return config, nil
}

// baseConfig returns the settings of Kubernetes' own servers, but without HTTP/2: see
// Listen.
func baseConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
}
