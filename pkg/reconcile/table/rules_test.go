// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
)

// The rights of a kind that isn't the program's own: none to its status, and patch only for a row of its fields.
func TestTheRulesOfOthersKinds(t *testing.T) {
	kube := kubernetes.New(nil)
	core := informers.NewSharedInformerFactory(kube, 0).Core().V1()
	namespaces, client := core.Namespaces().Informer(), table.ClusterScoped(kube.CoreV1().Namespaces)
	kind := plan.Kind{Name: "Namespace", Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), ClusterScoped: true, Group: "acme.dev"}
	keep := func(_, _ *corev1.Namespace) {}
	fields := table.Sets(plan.Row[*corev1.Namespace, *corev1.Namespace]{Kind: "Namespace", Resource: kind.Resource}, namespaces, client)
	quotas := table.Owns(plan.Row[*corev1.Namespace, *corev1.ResourceQuota]{
		Kind: "ResourceQuota", Resource: corev1.SchemeGroupVersion.WithResource("resourcequotas"), Namespace: (*corev1.Namespace).GetName,
	}, core.ResourceQuotas().Informer(), kube.CoreV1().ResourceQuotas)
	const quotaRule = "resourcequotas get list watch create patch delete"
	for what, row := range map[string]struct {
		kind *table.Kind
		want []string
	}{
		"fields of its own": {table.OfOthers(kind, keep, namespaces, client, fields), []string{"namespaces get list watch patch"}},
		"a quota":           {table.OfOthers(kind, keep, namespaces, client, quotas), []string{"namespaces get list watch", "namespaces/finalizers update", quotaRule}},
	} {
		var got []string
		for _, rule := range row.kind.Rules() {
			text := rule.Resources[0]
			for _, verb := range rule.Verbs {
				text = fmt.Sprint(text, " ", verb)
			}
			got = append(got, text)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: the rules are %q, not %q", what, got, row.want)
		}
	}
}
