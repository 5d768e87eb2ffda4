// SPDX-License-Identifier: Apache-2.0

// A client for the cluster's etcd, with the API server's credentials.

package devcluster

import (
	"fmt"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Etcd connects to the cluster's etcd with the API server's certificate. The caller
// closes the client.
func (c *Cluster) Etcd() (*clientv3.Client, error) {
	client, err := etcdOf(c.Log.String())
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return client, nil
}

// etcdOf connects with the API server's flags, which devcluster -v prints.
func etcdOf(log string) (*clientv3.Client, error) {
	var endpoint string
	var files transport.TLSInfo
	for flag, value := range map[string]*string{
		"--etcd-servers":  &endpoint,
		"--etcd-cafile":   &files.TrustedCAFile,
		"--etcd-certfile": &files.CertFile,
		"--etcd-keyfile":  &files.KeyFile,
	} {
		var ok bool
		if *value, ok = valueOf(flag, log); !ok {
			return nil, fmt.Errorf("the output of devcluster -v has no flag %s of the API server", flag)
		}
	}
	config, err := files.ClientConfig()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: config, DialTimeout: startTimeout})
}

// valueOf returns the value of a flag in command lines with one argument per line.
func valueOf(flag, log string) (value string, ok bool) {
	for line := range strings.Lines(log) {
		line = strings.TrimSuffix(strings.TrimSpace(line), ` \`)
		if value, ok = strings.CutPrefix(line, flag+"="); ok {
			return value, true
		}
	}
	return "", false
}
