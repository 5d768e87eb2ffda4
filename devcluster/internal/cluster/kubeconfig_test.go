// SPDX-License-Identifier: Apache-2.0

// Tests of kubeconfigs.

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

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

func TestKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	writeTestKubeconfig(t, path)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != testServer || len(config.CAData) == 0 || len(config.CertData) == 0 || len(config.KeyData) == 0 {
		t.Errorf("host %s, %d bytes of CA, %d of certificate, %d of key", config.Host, len(config.CAData), len(config.CertData), len(config.KeyData))
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
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
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("another cluster's kubeconfig was removed: %v", err)
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
