// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
	"example.com/sample-controller/test/footest"
)

func TestARecordWithAGapHasNoAnswer(t *testing.T) {
	r := &Recording{history: rules.History{Owner: footest.FooOwner}}
	list := &samplev1alpha1.FooList{ListMeta: metav1.ListMeta{ResourceVersion: "8"}}
	if has, err := r.has(list, footest.FooKind); !has || err != nil {
		t.Errorf("The record has caught up: %v (%v)", has, err)
	}
	r.breakOff(errors.New("a gap"))
	if _, err := r.has(list, footest.FooKind); err == nil {
		t.Error("A record with a gap returned no error")
	}
}
