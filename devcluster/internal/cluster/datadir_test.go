// SPDX-License-Identifier: Apache-2.0

// Tests of the data folder, of the files in it, and of readiness.

package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
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
				if err := os.WriteFile(d.path("notes"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.remove(test.keepLogs); err != nil {
				t.Fatal(err)
			}
			d.release()
			if test.want == "" {
				if got := entries(t, parent); got != "" {
					t.Errorf("the folder still exists: %s", got)
				}
				return
			}
			if got := entries(t, d.Dir()); got != test.want {
				t.Errorf("left: %s", got)
			}
			if d.used() {
				t.Error("what is left counts as data of a cluster")
			}
		})
	}
}

func TestAuditPolicy(t *testing.T) {
	type resources struct {
		Group     string   `json:"group"`
		Resources []string `json:"resources"`
	}
	type rule struct {
		Level             string      `json:"level"`
		Verbs             []string    `json:"verbs"`
		Resources         []resources `json:"resources"`
		OmitManagedFields bool        `json:"omitManagedFields"`
	}
	reads, others := rule{Level: "None", Verbs: []string{"get", "list", "watch"}}, rule{Level: "Metadata"}
	bodies := func(group, resource string) rule {
		return rule{Level: "RequestResponse", Resources: []resources{{group, []string{resource, resource + "/*"}}}, OmitManagedFields: true}
	}
	for flags, want := range map[string][]rule{
		"":                                     {reads, others},
		"-audit-bodies=pods,deployments.apps,": {reads, bodies("", "pods"), bodies("apps", "deployments"), others},
	} {
		var policy struct {
			Rules []rule `json:"rules"`
		}
		if err := yaml.Unmarshal([]byte(auditPolicy(parseOptions(t, flags).AuditBodies)), &policy); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(policy.Rules, want) {
			t.Errorf("with %q: got %+v, want %+v", flags, policy.Rules, want)
		}
	}
}

func TestIsReady(t *testing.T) {
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
		taintsRemoved bool
		want          bool
	}{
		{"a new node", nil, notReady, true, false},
		{"Ready, but still tainted", condition(corev1.ConditionTrue), notReady, true, false},
		{"Ready, without a taint", condition(corev1.ConditionTrue), nil, true, true},
		{"Ready, and nobody removes the taint", condition(corev1.ConditionTrue), notReady, false, true},
		{"not Ready", condition(corev1.ConditionFalse), nil, true, false},
		{"unreachable", condition(corev1.ConditionUnknown), nil, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := &corev1.Node{Spec: corev1.NodeSpec{Taints: test.taints}, Status: corev1.NodeStatus{Conditions: test.conditions}}
			if got := isReady(node, test.taintsRemoved); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestCountReady(t *testing.T) {
	node := func(name string, status corev1.ConditionStatus) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
		}
	}
	nodes := []corev1.Node{
		node("ready", corev1.ConditionTrue),
		node("ready-in-the-last-run", corev1.ConditionTrue),
		node("not-ready", corev1.ConditionFalse),
	}
	leases := []coordinationv1.Lease{
		{ObjectMeta: metav1.ObjectMeta{Name: "ready"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "not-ready"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "deleted"}},
	}
	if got := countReady(nodes, leases, true); got != 1 {
		t.Errorf("%d nodes are ready, want 1", got)
	}
}

func TestPollRetries(t *testing.T) {
	calls := 0
	err := poll(t.Context(), func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("%d calls, %v", calls, err)
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
