// SPDX-License-Identifier: Apache-2.0

// Command thirdparty is a client as others might have written it: it uses upstream's
// types, clientset, informer and lister, and nothing of this project. It creates, scales
// and deletes a Foo, and exits 0 if each step has the expected result.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"k8s.io/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "k8s.io/sample-controller/pkg/generated/clientset/versioned"
	typed "k8s.io/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	informers "k8s.io/sample-controller/pkg/generated/informers/externalversions"
	listers "k8s.io/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

const (
	name       = "third-party"
	pollPeriod = 50 * time.Millisecond
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of a kubeconfig")
	namespace := flag.String("namespace", "default", "namespace for the Foo, in which a controller must be active")
	timeout := flag.Duration("timeout", time.Minute, "timeout for the whole run")
	flag.Parse()
	if err := run(*kubeconfig, *namespace, *timeout); err != nil {
		log.Fatal(err)
	}
}

func run(kubeconfig, namespace string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	foos := factory.Samplecontroller().V1alpha1().Foos()
	informer := foos.Informer() // the factory starts those that were asked for
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("listing the Foos of %s: %w", namespace, ctx.Err())
	}
	return live(ctx, client.SamplecontrollerV1alpha1().Foos(namespace), foos.Lister().Foos(namespace))
}

// live creates, scales and deletes a Foo.
func live(ctx context.Context, foos typed.FooInterface, lister listers.FooNamespaceLister) error {
	one, three := int32(1), int32(3)
	_, err := foos.Create(ctx, &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: name, Replicas: &one},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating: %w", err)
	}
	if err := await(ctx, lister, "1 Pod is available", available(1)); err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		foo, err := foos.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		foo.Spec.Replicas = &three
		_, err = foos.Update(ctx, foo, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("updating: %w", err)
	}
	if err := await(ctx, lister, "3 Pods are available", available(3)); err != nil {
		return err
	}
	if err := foos.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	return await(ctx, lister, "the Foo is deleted", func(foo *v1alpha1.Foo) bool { return foo == nil })
}

func available(want int32) func(*v1alpha1.Foo) bool {
	return func(foo *v1alpha1.Foo) bool { return foo != nil && foo.Status.AvailableReplicas == want }
}

// await waits until the Foo, or nil if there is none, is as wanted.
func await(ctx context.Context, lister listers.FooNamespaceLister, what string, wanted func(*v1alpha1.Foo) bool) error {
	var foo *v1alpha1.Foo
	err := wait.PollUntilContextCancel(ctx, pollPeriod, true, func(context.Context) (bool, error) {
		found, err := lister.Get(name)
		if foo = found; err != nil {
			foo = nil
		}
		return wanted(foo), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w; last seen: %v", what, err, foo)
	}
	fmt.Println(what)
	return nil
}
