// SPDX-License-Identifier: Apache-2.0

package reconciletest_test

import (
	"context"
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest"
)

// The kind is what the controller declares, and run is what its main function calls.
var (
	kind *plan.Kind
	run  func(ctx context.Context, client rest.Interface, kubeInformers informers.SharedInformerFactory, recorder record.EventRecorder) error
)

// A project's own test of its controller, besides golden files.
func ExampleTest() {
	_ = func(t *testing.T) { // func TestReconcile(t *testing.T)
		reconciletest.Test(t, reconciletest.Controller[*samplev1alpha1.Foo]{
			Kind:    kind,
			Example: &samplev1alpha1.Foo{Spec: samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(1))}},
			Edits: []func(*samplev1alpha1.Foo){
				func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) },
				func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = "api" },
			},
			Start: func(ctx context.Context, client rest.Interface, recorder record.EventRecorder) error {
				kubeInformers := informers.NewSharedInformerFactory(kubernetes.New(client), reconciletest.ResyncPeriod)
				defer kubeInformers.Shutdown() // after ctx has ended
				return run(ctx, client, kubeInformers, recorder)
			},
		})
	}
}

// A folder has owners, such as testdata/small.yaml, and their children in testdata/small.children.yaml.
func ExampleGolden() {
	_ = func(t *testing.T) { // func TestChildren(t *testing.T)
		reconciletest.Golden[*samplev1alpha1.Foo](t, kind, "testdata")
	}
}
