// SPDX-License-Identifier: Apache-2.0

// Tests of keys, certificates and kubeconfigs.

package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newPKI creates the keys and certificates of a new data folder.
func newPKI(t *testing.T) (layout, *authority) {
	t.Helper()
	l := layout(t.TempDir())
	must(t, os.Mkdir(l.pki(), 0o700))
	ca, err := preparePKI(l)
	must(t, err)
	return l, ca
}

func TestRestartKeepsAuthoritiesAndServiceAccountKey(t *testing.T) {
	l, _ := newPKI(t)
	paths := []string{l.serviceAccountKey(), l.serviceAccountPublicKey()}
	for _, ca := range []string{clusterCA, etcdCA, frontProxyCA} {
		paths = append(paths, l.cert(ca), l.key(ca))
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

func TestABrokenAuthorityIsNotReplaced(t *testing.T) {
	l, _ := newPKI(t)
	must(t, os.WriteFile(l.key(clusterCA), []byte("no key"), 0o600))
	if _, err := preparePKI(l); err == nil {
		t.Error("an unreadable key was replaced")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

const testServer = "https://127.0.0.1:1234"

func writeTestKubeconfig(t *testing.T, path string) {
	t.Helper()
	_, ca := newPKI(t)
	config, err := kubeconfig(ca, testServer, adminUser, adminGroup)
	must(t, err)
	must(t, writeKubeconfig(path, config))
}

func TestKubeconfigTarget(t *testing.T) {
	dir := t.TempDir()
	ours, foreign, junk := filepath.Join(dir, "ours"), filepath.Join(dir, "foreign"), filepath.Join(dir, "junk")
	writeTestKubeconfig(t, ours)
	for path, content := range map[string]string{
		foreign: "apiVersion: v1\nkind: Config\nclusters:\n- name: production\n  cluster: {server: https://example.com}\n",
		junk:    "a shopping list",
	} {
		must(t, os.WriteFile(path, []byte(content), 0o600))
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
	must(t, removeKubeconfig(path, "https://127.0.0.1:4321"))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatalf("another cluster's kubeconfig was removed: %v", err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	must(t, removeKubeconfig(path, testServer))
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig still exists: %v", err)
	}
	if err := removeKubeconfig(path, testServer); err != nil {
		t.Errorf("removing a kubeconfig that does not exist: %v", err)
	}
}
