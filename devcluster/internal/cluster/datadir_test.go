// SPDX-License-Identifier: Apache-2.0

// Tests of the data folder.

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func open(t *testing.T, path string) *dataDir {
	t.Helper()
	d, err := openDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fill creates a file in each place that a cluster uses.
func fill(t *testing.T, d *dataDir) {
	t.Helper()
	for _, path := range []string{
		filepath.Join(d.EtcdData(), "member", "db"), d.Log(Etcd), d.AuditLog(), d.path("audit-2026.log"),
		d.Cert(clusterCA), d.KwokStages(), d.Kubeconfig(),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func entries(t *testing.T, dir string) string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(found))
	for i, entry := range found {
		names[i] = entry.Name()
	}
	return strings.Join(names, " ")
}

func TestDataDirIsCreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b c")
	d := open(t, path)
	defer d.release()
	if d.Dir() != path || !d.fresh || d.used() {
		t.Errorf("folder %s, fresh %t, used %t", d.Dir(), d.fresh, d.used())
	}
}

func TestDataDirInUseIsRefused(t *testing.T) {
	d := open(t, t.TempDir())
	if _, err := openDataDir(d.Dir()); err == nil || !strings.Contains(err.Error(), "in use by a running devcluster (process ") {
		t.Errorf("got %v", err)
	}
	d.release()
	open(t, d.Dir()).release()
}

func TestOtherFoldersAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openDataDir(dir); err == nil || !strings.Contains(err.Error(), "was not created by devcluster") {
		t.Errorf("got %v", err)
	}
	if got := entries(t, dir); got != "thesis.tex" {
		t.Errorf("the folder contains %s", got)
	}
}

func TestRemove(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "data"))
	fill(t, d)
	if err := d.remove(false); err != nil {
		t.Fatal(err)
	}
	d.release()
	if _, err := os.Stat(d.Dir()); !os.IsNotExist(err) {
		t.Errorf("the folder still exists, with %s", entries(t, d.Dir()))
	}
}

func TestRemoveCanKeepLogs(t *testing.T) {
	d := open(t, t.TempDir())
	fill(t, d)
	if err := d.remove(true); err != nil {
		t.Fatal(err)
	}
	d.release()
	if got := entries(t, d.Dir()); got != "audit-2026.log audit.log lock logs" {
		t.Errorf("left: %s", got)
	}
	again := open(t, d.Dir())
	defer again.release()
	if again.used() {
		t.Error("logs count as data of a cluster")
	}
}

func TestRemoveLeavesTheUsersFiles(t *testing.T) {
	d := open(t, t.TempDir())
	fill(t, d)
	if err := os.WriteFile(d.path("notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.remove(false); err != nil {
		t.Fatal(err)
	}
	d.release()
	if got := entries(t, d.Dir()); got != "notes" {
		t.Errorf("left: %s", got)
	}
}
