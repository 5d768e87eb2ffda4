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
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// step is one thing that a user does.
type step struct {
	name string
	do   func(*world)
}

// patience is how long a user tries who works on a Deployment that is not there yet.
const patience = 30 * time.Second

// create makes a Foo. replicas is 0 where the Foo leaves them to others.
func create(name, deploymentName string, replicas int32) step {
	return step{fmt.Sprintf("create Foo %s: Deployment %s, %d replicas", name, deploymentName, replicas), func(w *world) {
		w.add(newFoo(name, deploymentName, replicas))
	}}
}

func newFoo(name, deploymentName string, replicas int32) *samplev1alpha1.Foo {
	foo := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: deploymentName},
	}
	if replicas > 0 {
		foo.Spec.Replicas = &replicas
	}
	return foo
}

func scale(name string, replicas int32) step {
	return step{fmt.Sprintf("scale Foo %s to %d", name, replicas), func(w *world) {
		w.edit(fooID(name), func(object runtime.Object) { object.(*samplev1alpha1.Foo).Spec.Replicas = &replicas })
	}}
}

func rename(name, deploymentName string) step {
	return step{fmt.Sprintf("give Foo %s the Deployment name %s", name, deploymentName), func(w *world) {
		w.edit(fooID(name), func(object runtime.Object) {
			object.(*samplev1alpha1.Foo).Spec.DeploymentName = deploymentName
		})
	}}
}

func deleteFoo(name string) step {
	return step{"delete Foo " + name, func(w *world) { w.remove(fooID(name), metav1.DeletePropagationBackground) }}
}

func deleteFooInForeground(name string) step {
	return step{"delete Foo " + name + " in the foreground", func(w *world) {
		w.remove(fooID(name), metav1.DeletePropagationForeground)
	}}
}

func createForeign(name string) step {
	return step{"create a Deployment " + name + " by hand", func(w *world) { w.add(foreign(name)) }}
}

func deleteDeployment(name string) step {
	return step{"delete Deployment " + name, func(w *world) {
		w.remove(deploymentID(name), metav1.DeletePropagationBackground)
	}}
}

// drift changes a Deployment in all that a Foo owns of it.
func drift(name string) step {
	return step{"change what the Foo owns of Deployment " + name, func(w *world) {
		w.editDeployment(name, func(deployment *appsv1.Deployment) {
			nine := int32(9)
			deployment.Spec.Replicas = &nine
			deployment.Spec.Template.Labels["app"] = "drifted"
			for i := range deployment.Spec.Template.Spec.Containers {
				deployment.Spec.Template.Spec.Containers[i].Image = "drifted:1"
			}
		})
	}}
}

// edit changes a Deployment in what belongs to others.
func edit(name, note string) step {
	return step{"change what is others' in Deployment " + name, func(w *world) {
		w.editDeployment(name, func(deployment *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, "note", note)
			metav1.SetMetaDataLabel(&deployment.ObjectMeta, "team", "a")
			metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, "kubectl.kubernetes.io/restartedAt", note)
			deployment.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
			if pod := &deployment.Spec.Template.Spec; len(pod.Containers) == 1 {
				pod.Containers = append([]corev1.Container{{Name: "sidecar", Image: "envoy:1"}}, pod.Containers...)
			}
		})
	}}
}

func scaleDeployment(name string, replicas int32) step {
	return step{fmt.Sprintf("scale Deployment %s to %d", name, replicas), func(w *world) {
		w.editDeployment(name, func(deployment *appsv1.Deployment) { deployment.Spec.Replicas = &replicas })
	}}
}

func handOver(name, fooName string) step {
	return step{"hand Deployment " + name + " over to Foo " + fooName, func(w *world) {
		w.editDeployment(name, func(deployment *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, "samplecontroller.k8s.io/adopt-by", fooName)
		})
	}}
}

// atOnce is several steps with hardly any time between them: enough for a
// controller that sees each of them, and no more.
func atOnce(steps ...step) step {
	all := step{name: "at once"}
	for _, s := range steps {
		all.name += ", " + s.name
	}
	all.do = func(w *world) {
		for _, s := range steps {
			s.do(w)
			advance(time.Millisecond)
		}
	}
	return all
}

// add waits for a name that is still taken, as by what is being deleted.
func (w *world) add(object runtime.Object) {
	w.try(idOf(object), func() error {
		_, err := w.api.create(object, anything)
		return err
	})
}

// edit waits for an object that is not there yet.
func (w *world) edit(id objectID, change func(runtime.Object)) {
	w.try(id, func() error {
		object, err := w.api.get(id)
		if err != nil {
			return err
		}
		change(object)
		_, err = w.api.update(object, "", anything)
		return err
	})
}

func (w *world) remove(id objectID, propagation metav1.DeletionPropagation) {
	w.try(id, func() error {
		return w.api.delete(id, metav1.DeleteOptions{PropagationPolicy: &propagation}, anything)
	})
}

// try has a user try until it works, for a time.
func (w *world) try(id objectID, work func() error) {
	for began := time.Now(); ; advance(time.Second) {
		err := work()
		if err == nil {
			return
		}
		if time.Since(began) >= patience {
			w.note("user: gives up on %s: %v", id, err)
			return
		}
	}
}

func (w *world) editDeployment(name string, change func(*appsv1.Deployment)) {
	w.edit(deploymentID(name), func(object runtime.Object) { change(object.(*appsv1.Deployment)) })
}
