// SPDX-License-Identifier: Apache-2.0

// Foos as raw objects, and as tables.

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// rawFoos returns a client for Foos that our types can't represent.
func (ns *namespace) rawFoos() dynamic.ResourceInterface {
	return ns.in.dynamic.Resource(samplev1alpha1.SchemeGroupVersion.WithResource("foos")).Namespace(ns.name)
}

// rawFoo returns a Foo with a name and the given YAML.
func rawFoo(t *testing.T, name, text string) *unstructured.Unstructured {
	t.Helper()
	foo := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &foo.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if foo.Object == nil {
		foo.Object = map[string]any{}
	}
	foo.SetAPIVersion(samplev1alpha1.SchemeGroupVersion.String())
	foo.SetKind("Foo")
	foo.SetName(name)
	return foo
}

// tableOf requests a Foo as a table, as kubectl get does.
func tableOf(t *testing.T, ns *namespace, foo string) *metav1.Table {
	t.Helper()
	table := &metav1.Table{}
	text, err := cluster.foos.SamplecontrollerV1alpha1().RESTClient().Get().
		Namespace(ns.name).Resource("foos").Name(foo).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(t.Context()).Raw()
	if err == nil {
		err = yaml.Unmarshal(text, table)
	}
	if err != nil {
		t.Fatalf("Requesting a table: %v", err)
	}
	return table
}
