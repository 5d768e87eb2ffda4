// SPDX-License-Identifier: Apache-2.0

// The objects that exist when a measurement starts.

package measure

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/cluster"
	"example.com/sample-controller/test/bench/internal/objects"
)

const (
	namespaceCount = 10
	// goroutines is how many objects are created at the same time. More are no faster on
	// two cores.
	goroutines = 16
)

// namespaces returns the namespaces that objects are spread over.
func namespaces() []string {
	names := make([]string, namespaceCount)
	for i := range names {
		names[i] = namespaceOf(i)
	}
	return names
}

// namespaceOf returns the namespace of the object with a number.
func namespaceOf(number int) string {
	return fmt.Sprintf("bench-%d", number%namespaceCount)
}

// nameOf returns the name of the Foo with a number.
func nameOf(number int) string {
	return fmt.Sprintf("foo-%d", number)
}

// createFoo creates the Foo with a number in a namespace.
func createFoo(ctx context.Context, c *cluster.Cluster, namespace string, number int) (*samplev1alpha1.Foo, error) {
	foo, err := c.Foos.SamplecontrollerV1alpha1().Foos(namespace).
		Create(ctx, objects.Foo(namespace, nameOf(number)), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a Foo: %w", err)
	}
	return foo, nil
}

// waitingFoos creates n Foos without a status, with the numbers from 0. The last one is created
// last, so that at its resourceVersion all exist.
func waitingFoos(ctx context.Context, c *cluster.Cluster, n int) ([]*samplev1alpha1.Foo, error) {
	foos := make([]*samplev1alpha1.Foo, n)
	create := func(ctx context.Context, i int) (err error) {
		foos[i], err = createFoo(ctx, c, namespaceOf(i), i)
		return err
	}
	if err := each(ctx, 0, n-1, create); err != nil {
		return nil, err
	}
	return foos, create(ctx, n-1)
}

// settledFoos creates Foos with the numbers from first to first+n-1 as the controller
// leaves them: with a Deployment and a status.
func settledFoos(ctx context.Context, c *cluster.Cluster, first, n int) error {
	return each(ctx, first, n, func(ctx context.Context, number int) error {
		foo, err := createFoo(ctx, c, namespaceOf(number), number)
		if err != nil {
			return err
		}
		return objects.Settle(ctx, c.Kube, c.Foos, foo)
	})
}

// foreignDeployments creates Deployments unrelated to any Foo, with the numbers from
// first to first+n-1.
func foreignDeployments(ctx context.Context, c *cluster.Cluster, first, n int) error {
	return each(ctx, first, n, func(ctx context.Context, number int) error {
		deployment := objects.Foreign(namespaceOf(number), fmt.Sprintf("foreign-%d", number))
		_, err := c.Kube.AppsV1().Deployments(deployment.Namespace).Create(ctx, deployment, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a foreign Deployment: %w", err)
		}
		return nil
	})
}

// each calls do with n numbers from first on, several at a time.
func each(ctx context.Context, first, n int, do func(ctx context.Context, number int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(goroutines)
	for number := first; number < first+n && ctx.Err() == nil; number++ {
		group.Go(func() error { return do(ctx, number) })
	}
	return group.Wait()
}
