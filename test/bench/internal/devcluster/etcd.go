/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
