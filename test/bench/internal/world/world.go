/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package world makes what a measurement finds when it begins.
package world

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/devcluster"
	"example.com/sample-controller/test/bench/internal/objects"
)

const (
	namespaces = 10
	// goroutines is how many objects are created at the same time: more do not
	// make two cores any quicker.
	goroutines = 16
)

// Namespaces are those that objects are spread over.
func Namespaces() []string {
	names := make([]string, namespaces)
	for i := range names {
		names[i] = Namespace(i)
	}
	return names
}

// Namespace is where the object with a number goes.
func Namespace(number int) string {
	return fmt.Sprintf("bench-%d", number%namespaces)
}

// Name is that of the Foo with a number.
func Name(number int) string {
	return fmt.Sprintf("foo-%d", number)
}

// Foos creates Foos with the numbers from first to first+n-1. The last of them
// was created last: everything has been created at its resourceVersion.
func Foos(ctx context.Context, cluster *devcluster.Cluster, first, n int) ([]*samplev1alpha1.Foo, error) {
	return FoosIn(ctx, cluster, Namespace, first, n)
}

// FoosIn is Foos, in namespaces of the caller's choice.
func FoosIn(ctx context.Context, cluster *devcluster.Cluster, namespace func(number int) string, first, n int) ([]*samplev1alpha1.Foo, error) {
	foos := make([]*samplev1alpha1.Foo, n)
	create := func(ctx context.Context, i int) (err error) {
		in := namespace(first + i)
		foos[i], err = cluster.Foos.SamplecontrollerV1alpha1().Foos(in).
			Create(ctx, objects.Foo(in, Name(first+i)), metav1.CreateOptions{})
		return err
	}
	if err := each(ctx, n-1, create); err != nil {
		return nil, fmt.Errorf("creating Foos: %w", err)
	}
	if err := create(ctx, n-1); err != nil {
		return nil, fmt.Errorf("creating Foos: %w", err)
	}
	return foos, nil
}

// each calls do with 0 to n-1, several at a time.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(goroutines)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
