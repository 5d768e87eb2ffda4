// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
	"example.com/sample-controller/tools/kubectl-foo/internal/manifest"
	"example.com/sample-controller/tools/kubectl-foo/internal/schema"
)

// applied returns the Foos of files as the API server would have them after an apply, with
// the defaults of the CustomResourceDefinition. Foos that the API server would refuse are
// an error. Those without a namespace get the given one.
func applied(ctx context.Context, files []string, in io.Reader, stored []*samplev1alpha1.Foo, namespace string) ([]*samplev1alpha1.Foo, error) {
	objects, err := manifest.Read(files, in)
	if err != nil {
		return nil, err
	}
	v, err := schema.New()
	if err != nil {
		return nil, err
	}
	var foos []*samplev1alpha1.Foo
	for _, object := range objects {
		foo, err := appliedOne(ctx, v, object, stored, namespace)
		if err != nil {
			return nil, err
		}
		foos = append(foos, foo)
	}
	return foos, nil
}

func appliedOne(ctx context.Context, v *schema.Validator, object manifest.Object, stored []*samplev1alpha1.Foo, namespace string) (*samplev1alpha1.Foo, error) {
	switch {
	case object.GetNamespace() == "" && namespace == "":
		object.SetNamespace(metav1.NamespaceDefault)
	case object.GetNamespace() == "":
		object.SetNamespace(namespace)
	case namespace != "" && object.GetNamespace() != namespace:
		return nil, object.Fail("metadata.namespace", fmt.Errorf("%q is of the namespace %q, not %q: set --namespace or -A", object.GetName(), object.GetNamespace(), namespace))
	}
	old := find(stored, object.GetNamespace(), object.GetName())
	judged, err := judge(ctx, v, object.Unstructured, old)
	if err != nil {
		return nil, errors.Join(problemsIn(object, err)...)
	}
	foo := &samplev1alpha1.Foo{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(judged.Object, foo); err != nil {
		return nil, object.Fail("", err)
	}
	if old == nil {
		foo.UID, foo.Generation, foo.Status = "", 1, samplev1alpha1.FooStatus{}
		return foo, nil
	}
	after := old.DeepCopy()
	if !equality.Semantic.DeepEqual(after.Spec, foo.Spec) {
		after.Spec = foo.Spec
		after.Generation++
	}
	return after, nil
}

func judge(ctx context.Context, v *schema.Validator, object *unstructured.Unstructured, old *samplev1alpha1.Foo) (*unstructured.Unstructured, error) {
	if old == nil {
		return v.Create(ctx, object)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return nil, err
	}
	before := &unstructured.Unstructured{Object: fields}
	before.SetGroupVersionKind(samplev1alpha1.SchemeGroupVersion.WithKind("Foo"))
	return v.Update(ctx, object, before)
}

func find(foos []*samplev1alpha1.Foo, namespace, name string) *samplev1alpha1.Foo {
	for _, foo := range foos {
		if foo.Namespace == namespace && foo.Name == name {
			return foo
		}
	}
	return nil
}

// completeNames completes the names of Foos for shells.
func completeNames(config *genericclioptions.ConfigFlags) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := cluster.New(config, false)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		foos, err := c.ListFoos(command.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, foo := range foos {
			names = append(names, foo.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
