// SPDX-License-Identifier: Apache-2.0

// Tests of where the client configuration comes from.

package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhereTheClusterIsFound(t *testing.T) {
	folder := t.TempDir()
	fromFlag := writeKubeconfig(t, filepath.Join(folder, "flag"), "https://from-flag")
	fromEnvironment := writeKubeconfig(t, filepath.Join(folder, "environment"), "https://from-environment")
	home := filepath.Join(folder, "home")
	writeKubeconfig(t, filepath.Join(home, ".kube", "config"), "https://from-home")

	for name, row := range map[string]struct {
		flags       Cluster
		environment string
		want        string
	}{
		"-kubeconfig before $KUBECONFIG": {Cluster{kubeconfig: fromFlag}, fromEnvironment, "https://from-flag"},
		"$KUBECONFIG before home":        {Cluster{}, fromEnvironment, "https://from-environment"},
		"-master in place of its server": {Cluster{kubeconfig: fromFlag, master: "https://from-master"}, "", "https://from-master"},
		"-master alone":                  {Cluster{master: "https://from-master"}, "", "https://from-master"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", row.environment)
			t.Setenv("HOME", home)
			row.flags.qps = -1
			config, namespace, err := row.flags.RESTConfig()
			must(t, err)
			if row.flags.kubeconfig == fromFlag && namespace != "of-flag" {
				t.Errorf("the namespace is %q, not that of the context", namespace)
			}
			if config.Host != row.want {
				t.Errorf("the server is %s, not %s", config.Host, row.want)
			}
			if config.QPS != -1 {
				t.Errorf("the client is limited to %v requests/s", config.QPS)
			}
		})
	}
}

func TestBadKubeconfigIsNamed(t *testing.T) {
	folder := t.TempDir()
	garbage := filepath.Join(folder, "garbage")
	must(t, os.WriteFile(garbage, []byte("neither YAML: nor: JSON"), 0o600))
	for path, part := range map[string]string{
		garbage:                         "garbage",
		filepath.Join(folder, "absent"): "no such file",
	} {
		_, _, err := (&Cluster{kubeconfig: path}).RESTConfig()
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), part) {
			t.Errorf("the error for %s is %v", path, err)
		}
	}
}

func writeKubeconfig(t *testing.T, path, server string) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(`apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, namespace: of-`+filepath.Base(path)+`}}]
clusters: [{name: test, cluster: {server: "`+server+`"}}]
`), 0o600))
	return path
}
