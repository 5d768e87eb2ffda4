// SPDX-License-Identifier: Apache-2.0

// Tests of the data directory, of the files in it, keys and certificates included, and of readiness.

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func open(t *testing.T, path string) *dataDir {
	t.Helper()
	d, err := openDataDir(path)
	must(t, err)
	return d
}

// fill creates a file in each place that a cluster uses.
func fill(t *testing.T, d *dataDir) {
	t.Helper()
	for _, path := range []string{
		filepath.Join(d.etcdData(), "member", "db"), d.log(Etcd), d.auditLog(), d.path("audit-2026.log"),
		d.cert(clusterCA), d.kwokStages(), d.adminKubeconfig(),
	} {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte("x"), 0o600))
	}
}

func entries(t *testing.T, dir string) string {
	t.Helper()
	found, err := os.ReadDir(dir)
	must(t, err)
	names := make([]string, len(found))
	for i, entry := range found {
		names[i] = entry.Name()
	}
	return strings.Join(names, " ")
}

func TestDataDirInUseIsRefused(t *testing.T) {
	d := open(t, t.TempDir())
	want := fmt.Sprintf("in use by a running devcluster (process %d)", os.Getpid())
	if _, err := openDataDir(d.dir()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	d.release()
	open(t, d.dir()).release()
}

func TestOtherDirectoriesAreRefused(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600))
	if _, err := openDataDir(dir); err == nil || !strings.Contains(err.Error(), "was not created by devcluster") {
		t.Errorf("got %v", err)
	}
	if got := entries(t, dir); got != "thesis.tex" {
		t.Errorf("the directory contains %s", got)
	}
}

func TestRemove(t *testing.T) {
	for name, test := range map[string]struct {
		keepLogs, notes bool
		want            string
	}{
		"everything":           {false, false, ""},
		"all but the logs":     {true, false, "audit-2026.log audit.log lock logs"},
		"all but users' files": {false, true, "notes"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			d := open(t, filepath.Join(parent, "data"))
			fill(t, d)
			if test.notes {
				must(t, os.WriteFile(d.path("notes"), nil, 0o600))
			}
			must(t, d.remove(test.keepLogs))
			d.release()
			if test.want == "" {
				if got := entries(t, parent); got != "" {
					t.Errorf("the directory still exists: %s", got)
				}
				return
			}
			if got := entries(t, d.dir()); got != test.want {
				t.Errorf("left: %s", got)
			}
			if d.used() {
				t.Error("what is left counts as data of a cluster")
			}
		})
	}
}

func TestCountReady(t *testing.T) {
	condition := func(status corev1.ConditionStatus) []corev1.NodeCondition {
		return []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
			{Type: corev1.NodeReady, Status: status},
		}
	}
	notReady := []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	for _, test := range []struct {
		name          string
		conditions    []corev1.NodeCondition
		taints        []corev1.Taint
		lease         string // the node that has one
		taintsRemoved bool
		want          int
	}{
		{"a new node", nil, notReady, "node", true, 0},
		{"Ready, but still tainted", condition(corev1.ConditionTrue), notReady, "node", true, 0},
		{"Ready, without a taint", condition(corev1.ConditionTrue), nil, "node", true, 1},
		{"Ready in the last run", condition(corev1.ConditionTrue), nil, "deleted", true, 0},
		{"Ready, and the taint stays", condition(corev1.ConditionTrue), notReady, "node", false, 1},
		{"not Ready", condition(corev1.ConditionFalse), nil, "node", true, 0},
		{"unreachable", condition(corev1.ConditionUnknown), nil, "node", false, 0},
	} {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
		node.Spec.Taints, node.Status.Conditions = test.taints, test.conditions
		leases := []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{Name: test.lease}}}
		if got := countReady([]corev1.Node{node}, leases, test.taintsRemoved); got != test.want {
			t.Errorf("%s: %d nodes are ready", test.name, got)
		}
	}
}

func TestPollReturnsCauseAndLastError(t *testing.T) {
	reason, last := errors.New("etcd exited unexpectedly"), errors.New("connection refused")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := poll(ctx, func(context.Context) error {
		cancel(reason)
		return last
	})
	if !errors.Is(err, reason) || !strings.Contains(err.Error(), last.Error()) {
		t.Errorf("got %v", err)
	}
}

// newPKI creates the keys and certificates of a new data directory.
func newPKI(t *testing.T) (layout, *authority) {
	t.Helper()
	l := layout(t.TempDir())
	must(t, os.Mkdir(l.pki(), 0o700))
	ca, err := preparePKI(l)
	must(t, err)
	return l, ca
}

func TestABrokenAuthorityIsNotReplaced(t *testing.T) {
	l, _ := newPKI(t)
	must(t, os.WriteFile(l.key(clusterCA), []byte("no key"), 0o600))
	if _, err := preparePKI(l); err == nil {
		t.Error("an unreadable key was replaced")
	}
}
