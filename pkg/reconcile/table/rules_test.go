// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
)

// The rights of a kind that isn't the program's own: none to its status, and patch only for a row of its fields.
func TestTheRulesOfOthersKinds(t *testing.T) {
	kube := kubernetes.New(nil)
	core := informers.NewSharedInformerFactory(kube, 0).Core().V1()
	namespaces, client := core.Namespaces().Informer(), ClusterScoped(kube.CoreV1().Namespaces)
	kind := plan.Kind{Name: "Namespace", Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), ClusterScoped: true, Group: "acme.dev"}
	keep := func(_, _ *corev1.Namespace) {}
	fields := Sets(plan.Row[*corev1.Namespace, *corev1.Namespace]{Kind: "Namespace", Resource: kind.Resource}, namespaces, client)
	quotas := Owns(plan.Row[*corev1.Namespace, *corev1.ResourceQuota]{
		Kind: "ResourceQuota", Resource: corev1.SchemeGroupVersion.WithResource("resourcequotas"), Namespace: (*corev1.Namespace).GetName,
	}, core.ResourceQuotas().Informer(), kube.CoreV1().ResourceQuotas)
	const quotaRule = "resourcequotas get list watch create patch delete"
	for what, row := range map[string]struct {
		kind *Kind
		want []string
	}{
		"fields of its own": {OfOthers(kind, keep, namespaces, client, fields), []string{"namespaces get list watch patch"}},
		"a quota":           {OfOthers(kind, keep, namespaces, client, quotas), []string{"namespaces get list watch", "namespaces/finalizers update", quotaRule}},
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

func TestRulesAreWhatTheTableNeeds(t *testing.T) {
	children := newCache(t, &corev1.ConfigMap{}).Informer()
	ref := func(resource string) plan.Ref[*samplev1alpha1.Foo, *corev1.Secret] {
		return plan.Ref[*samplev1alpha1.Foo, *corev1.Secret]{
			Kind: resource, Resource: corev1.SchemeGroupVersion.WithResource(resource), Names: func(*samplev1alpha1.Foo) []string { return nil },
		}
	}
	in := kubernetes.New(nil).CoreV1().Secrets
	kind := foos(newCache(t, &samplev1alpha1.Foo{}).Informer(), siteKind,
		Uses(ref("secrets"), nil, in), Uses(ref("others"), children, in), Uses(ref("configmaps"), nil, in), ownsKey(children, "a"))
	var got []string
	for _, rule := range kind.Rules() {
		got = append(got, fmt.Sprint(rule.APIGroups, rule.Resources, rule.Verbs))
	}
	want := []string{
		"[sites.dev] [sites] [get list watch]", "[sites.dev] [sites/status] [update]", "[sites.dev] [sites/finalizers] [update]",
		"[] [configmaps] [get list watch create patch delete]", "[] [secrets] [get]", "[] [others] [get list watch]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rules are\n%q, want\n%q", got, want)
	}
}
