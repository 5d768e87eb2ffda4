// SPDX-License-Identifier: Apache-2.0

// Kubeconfigs of the administrator and of the components.

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

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
