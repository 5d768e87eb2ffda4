// SPDX-License-Identifier: Apache-2.0

// The certificate of a server: self-signed, or from files that are reloaded.

package serving

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"
)

// Certificate holds the TLS configuration with a server's certificate.
type Certificate struct {
	config *tls.Config
	// watch reloads the files when they change, until ctx is done.
	watch func(ctx context.Context)
}

// SelfSigned makes a self-signed certificate, which is kept in memory only. It allows
// encryption but does not authenticate the server. Its key is of P-256, because anybody
// may begin a handshake, and one with RSA takes four times the CPU.
func SelfSigned() (*Certificate, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	// Valid from an hour ago, for clients whose clock is behind.
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: host, NotBefore: time.Now().Add(-time.Hour)}, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	config := baseConfig()
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}}
	return &Certificate{config: config, watch: func(context.Context) {}}, nil
}

// FromFiles reads a certificate, followed by those of its issuers, and its key.
func FromFiles(certFile, keyFile string) (*Certificate, error) {
	files, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate %s with the key %s: %w", certFile, keyFile, err)
	}
	current := dynamiccertificates.NewDynamicServingCertificateController(baseConfig(), nil, files, nil, nil)
	files.AddListener(current)
	if err := current.RunOnce(); err != nil {
		return nil, fmt.Errorf("reading the certificate %s: %w", certFile, err)
	}
	config := baseConfig()
	config.GetConfigForClient = current.GetConfigForClient
	return &Certificate{config: config, watch: func(ctx context.Context) {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { files.Run(ctx, 1) })
		wg.Go(func() { current.Run(1, ctx.Done()) })
	}}, nil
}

// Config returns the TLS configuration for Listen.
func (c *Certificate) Config() *tls.Config {
	return c.config
}

// Watch reloads the certificate whenever its files change; new connections use the new
// one. It returns when ctx is done.
func (c *Certificate) Watch(ctx context.Context) {
	c.watch(ctx)
}

// baseConfig returns the settings of Kubernetes' own servers, but without HTTP/2: see
// Listen.
func baseConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
}
