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

// The clientsets for the controller. client-go's fakes do not pass the context on, so
// with them no call could hang until its deadline. A call that is not implemented here
// reaches a nil interface and panics.

package simulation

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	typedv1alpha1 "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

type kubeClient struct {
	kubernetes.Interface

	conn *connection
}

// AppsV1 returns a client that serves only Deployments.
func (c kubeClient) AppsV1() typedappsv1.AppsV1Interface { return appsClient{conn: c.conn} }

// IsWatchListSemanticsUnSupported makes informers list first, then watch.
func (c kubeClient) IsWatchListSemanticsUnSupported() bool { return true }

type appsClient struct {
	typedappsv1.AppsV1Interface

	conn *connection
}

// Deployments returns the calls for Deployments. Any namespace means that of the
// simulation.
func (c appsClient) Deployments(string) typedappsv1.DeploymentInterface {
	return deploymentCalls{calls: calls[*appsv1.Deployment]{c.conn, "deployments"}}
}

type fooClient struct {
	clientset.Interface

	conn *connection
}

// SamplecontrollerV1alpha1 returns the client of Foos.
func (c fooClient) SamplecontrollerV1alpha1() typedv1alpha1.SamplecontrollerV1alpha1Interface {
	return sampleClient{conn: c.conn}
}

// IsWatchListSemanticsUnSupported makes informers list first, then watch.
func (c fooClient) IsWatchListSemanticsUnSupported() bool { return true }

type sampleClient struct {
	typedv1alpha1.SamplecontrollerV1alpha1Interface

	conn *connection
}

// Foos returns the calls for Foos. Any namespace means that of the simulation.
func (c sampleClient) Foos(string) typedv1alpha1.FooInterface {
	return fooCalls{calls: calls[*samplev1alpha1.Foo]{c.conn, "foos"}}
}

// calls are the calls that are the same for both resources, except for the type.
type calls[T runtime.Object] struct {
	conn     *connection
	resource string
}

// Get reads an object.
func (c calls[T]) Get(ctx context.Context, name string, _ metav1.GetOptions) (T, error) {
	return as[T](c.conn.get(ctx, objectID{c.resource, name}))
}

// Create creates an object.
func (c calls[T]) Create(ctx context.Context, object T, _ metav1.CreateOptions) (T, error) {
	return as[T](c.conn.create(ctx, object))
}

// Update replaces an object, except for its status.
func (c calls[T]) Update(ctx context.Context, object T, _ metav1.UpdateOptions) (T, error) {
	return as[T](c.conn.update(ctx, object, ""))
}

// UpdateStatus replaces an object's status.
func (c calls[T]) UpdateStatus(ctx context.Context, object T, _ metav1.UpdateOptions) (T, error) {
	return as[T](c.conn.update(ctx, object, "status"))
}

// Delete deletes an object, under the preconditions of options.
func (c calls[T]) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return c.conn.delete(ctx, objectID{c.resource, name}, options)
}

// Watch delivers the changes after the resourceVersion of options.
func (c calls[T]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return c.conn.watch(ctx, c.resource, options)
}

// as converts the result of a call to the caller's type.
func as[T runtime.Object](object runtime.Object, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return object.(T), nil
}

type deploymentCalls struct {
	calls[*appsv1.Deployment]
	otherDeploymentCalls
}

// otherDeploymentCalls is embedded one level deeper than calls, so the methods of calls
// take precedence.
type otherDeploymentCalls struct {
	typedappsv1.DeploymentInterface
}

// List returns all Deployments.
func (c deploymentCalls) List(ctx context.Context, _ metav1.ListOptions) (*appsv1.DeploymentList, error) {
	objects, version, err := c.conn.list(ctx, "deployments")
	if err != nil {
		return nil, err
	}
	list := &appsv1.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: versionText(version)}}
	for _, object := range objects {
		list.Items = append(list.Items, *object.(*appsv1.Deployment))
	}
	return list, nil
}

type fooCalls struct {
	calls[*samplev1alpha1.Foo]
	otherFooCalls
}

type otherFooCalls struct{ typedv1alpha1.FooInterface }

// List returns all Foos.
func (c fooCalls) List(ctx context.Context, _ metav1.ListOptions) (*samplev1alpha1.FooList, error) {
	objects, version, err := c.conn.list(ctx, "foos")
	if err != nil {
		return nil, err
	}
	list := &samplev1alpha1.FooList{ListMeta: metav1.ListMeta{ResourceVersion: versionText(version)}}
	for _, object := range objects {
		list.Items = append(list.Items, *object.(*samplev1alpha1.Foo))
	}
	return list, nil
}
