// SPDX-License-Identifier: Apache-2.0

// Package thirdparty is a client as others might have written it: it uses upstream's
// types, clientset, informer and lister, and nothing of this project.
//
// CLIENT_KUBECONFIG and CLIENT_NAMESPACE name a cluster, and a namespace of it in which a
// controller is active. make test-e2e sets them.
package thirdparty

import (
	"context"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"k8s.io/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "k8s.io/sample-controller/pkg/generated/clientset/versioned"
	informers "k8s.io/sample-controller/pkg/generated/informers/externalversions"
)

const (
	name       = "third-party"
	pollPeriod = 50 * time.Millisecond
	patience   = 4 * time.Minute // images may be pulled
)

// TestClient creates, scales and deletes a Foo.
func TestClient(t *testing.T) {
	kubeconfig, namespace := os.Getenv("CLIENT_KUBECONFIG"), os.Getenv("CLIENT_NAMESPACE")
	if kubeconfig == "" {
		t.Fatal("CLIENT_KUBECONFIG is not set, so there is no cluster to test against: run make test-e2e")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	client, err := clientset.NewForConfig(config)
	must(t, err)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Samplecontroller().V1alpha1().Foos()
	hasSynced := informer.Informer().HasSynced // the factory starts those that were asked for
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), hasSynced) {
		t.Fatalf("The Foos of %s were not listed", namespace)
	}
	foos, lister := client.SamplecontrollerV1alpha1().Foos(namespace), informer.Lister().Foos(namespace)
	await := func(what string, wanted func(foo *v1alpha1.Foo) bool) {
		t.Helper()
		var foo *v1alpha1.Foo // nil if there is none
		err := wait.PollUntilContextTimeout(t.Context(), pollPeriod, patience, true, func(context.Context) (bool, error) {
			var err error
			if foo, err = lister.Get(name); err != nil {
				foo = nil
			}
			return wanted(foo), nil
		})
		if err != nil {
			t.Fatalf("Waiting until %s: %v; last seen: %v", what, err, foo)
		}
	}
	one, three := int32(1), int32(3)
	_, err = foos.Create(t.Context(), &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: name, Replicas: &one},
	}, metav1.CreateOptions{})
	must(t, err)
	await("1 Pod is available", available(1))
	must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		foo, err := foos.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		foo.Spec.Replicas = &three
		_, err = foos.Update(t.Context(), foo, metav1.UpdateOptions{})
		return err
	}))
	await("3 Pods are available", available(3))
	must(t, foos.Delete(t.Context(), name, metav1.DeleteOptions{}))
	await("the Foo is deleted", func(foo *v1alpha1.Foo) bool { return foo == nil })
}

func available(want int32) func(*v1alpha1.Foo) bool {
	return func(foo *v1alpha1.Foo) bool { return foo != nil && foo.Status.AvailableReplicas == want }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
