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

package main

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

// The clientsets that a controller is given, down to a session. Those of
// client-go's fakes don't pass the context on, so that no call could hang until
// its deadline. A call that is not here is one of a nil interface, and panics:
// the controller has no business making it.

type kubeClient struct {
	kubernetes.Interface
	session *session
}

func (c kubeClient) AppsV1() typedappsv1.AppsV1Interface { return appsClient{session: c.session} }

// IsWatchListSemanticsUnSupported tells informers to list, then to watch.
func (c kubeClient) IsWatchListSemanticsUnSupported() bool { return true }

type appsClient struct {
	typedappsv1.AppsV1Interface
	session *session
}

func (c appsClient) Deployments(string) typedappsv1.DeploymentInterface {
	return deploymentClient{calls: calls[*appsv1.Deployment]{c.session, "deployments"}}
}

type fooClient struct {
	clientset.Interface
	session *session
}

func (c fooClient) SamplecontrollerV1alpha1() typedv1alpha1.SamplecontrollerV1alpha1Interface {
	return sampleClient{session: c.session}
}

// IsWatchListSemanticsUnSupported tells informers to list, then to watch.
func (c fooClient) IsWatchListSemanticsUnSupported() bool { return true }

type sampleClient struct {
	typedv1alpha1.SamplecontrollerV1alpha1Interface
	session *session
}

func (c sampleClient) Foos(string) typedv1alpha1.FooInterface {
	return fooCalls{calls: calls[*samplev1alpha1.Foo]{c.session, "foos"}}
}

// calls are those that are alike for each type.
type calls[T runtime.Object] struct {
	session  *session
	resource string
}

func (c calls[T]) Get(ctx context.Context, name string, _ metav1.GetOptions) (T, error) {
	return as[T](c.session.get(ctx, objectID{c.resource, name}))
}

func (c calls[T]) Create(ctx context.Context, object T, _ metav1.CreateOptions) (T, error) {
	return as[T](c.session.create(ctx, object))
}

func (c calls[T]) Update(ctx context.Context, object T, _ metav1.UpdateOptions) (T, error) {
	return as[T](c.session.update(ctx, object, ""))
}

func (c calls[T]) UpdateStatus(ctx context.Context, object T, _ metav1.UpdateOptions) (T, error) {
	return as[T](c.session.update(ctx, object, "status"))
}

func (c calls[T]) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return c.session.delete(ctx, objectID{c.resource, name}, options)
}

func (c calls[T]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return c.session.watch(ctx, c.resource, options)
}

// as gives what a call returned the type that its caller knows.
func as[T runtime.Object](object runtime.Object, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return object.(T), nil
}

type deploymentClient struct {
	calls[*appsv1.Deployment]
	otherDeploymentCalls
}

// otherDeploymentCalls is one level deeper than calls, which therefore go first.
type otherDeploymentCalls struct {
	typedappsv1.DeploymentInterface
}

func (c deploymentClient) List(ctx context.Context, _ metav1.ListOptions) (*appsv1.DeploymentList, error) {
	objects, version, err := c.session.list(ctx, "deployments")
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

func (c fooCalls) List(ctx context.Context, _ metav1.ListOptions) (*samplev1alpha1.FooList, error) {
	objects, version, err := c.session.list(ctx, "foos")
	if err != nil {
		return nil, err
	}
	list := &samplev1alpha1.FooList{ListMeta: metav1.ListMeta{ResourceVersion: versionText(version)}}
	for _, object := range objects {
		list.Items = append(list.Items, *object.(*samplev1alpha1.Foo))
	}
	return list, nil
}
