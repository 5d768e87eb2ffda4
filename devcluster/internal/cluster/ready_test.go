// SPDX-License-Identifier: Apache-2.0

// Tests of readiness.

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
