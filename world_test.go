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
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/internal/footest"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// What is here changes the world as somebody else would, or looks at it. It goes
// past the list of writes, which holds the controller's own. Each change makes a
// new resourceVersion.

func (f *fixture) createFoo(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	f.api.stamp(foo)
	footest.Must(t, f.fooClient.Tracker().Create(footest.FoosResource, foo, footest.Namespace))
}

func (f *fixture) updateFoo(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	f.api.stamp(foo)
	footest.Must(t, f.fooClient.Tracker().Update(footest.FoosResource, foo, footest.Namespace))
}

func (f *fixture) deleteFoo(t *testing.T, name string) {
	t.Helper()
	footest.Must(t, f.fooClient.Tracker().Delete(footest.FoosResource, footest.Namespace, name))
}

func (f *fixture) updateDeployment(t *testing.T, deployment *appsv1.Deployment) {
	t.Helper()
	f.api.stamp(deployment)
	footest.Must(t, f.kubeClient.Tracker().Update(footest.DeploymentsResource, deployment, footest.Namespace))
}

func (f *fixture) deleteDeployment(t *testing.T, name string) {
	t.Helper()
	footest.Must(t, f.kubeClient.Tracker().Delete(footest.DeploymentsResource, footest.Namespace, name))
}

// deployment returns a Deployment as the API server has it.
func (f *fixture) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	object, err := f.kubeClient.Tracker().Get(footest.DeploymentsResource, footest.Namespace, name)
	footest.Must(t, err)
	return object.(*appsv1.Deployment)
}

// storedFoo returns a Foo as the API server has it.
func (f *fixture) storedFoo(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	object, err := f.fooClient.Tracker().Get(footest.FoosResource, footest.Namespace, name)
	footest.Must(t, err)
	return object.(*samplev1alpha1.Foo)
}

func (f *fixture) cachedFoo(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	foo, err := f.foos.Foos(footest.Namespace).Get(name)
	footest.Must(t, err)
	return foo
}
