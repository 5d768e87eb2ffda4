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

// The steps of users: changes to Foos and Deployments.

package simulation

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// step is one change that a user makes.
type step struct {
	name string
	do   func(*cluster)
}

// String returns the name, which rapid prints for a step that it drew.
func (s step) String() string { return s.name }

// userTimeout is how long a user retries, for example while a Deployment does not exist
// yet.
const userTimeout = 30 * time.Second

// create creates a Foo. With 0 replicas it leaves the number to others.
func create(name, deploymentName string, replicas int32) step {
	return step{fmt.Sprintf("create Foo %s: Deployment %s, %d replicas", name, deploymentName, replicas), func(c *cluster) {
		c.create(newFoo(name, deploymentName, replicas))
	}}
}

func scale(name string, replicas int32) step {
	return step{fmt.Sprintf("scale Foo %s to %d", name, replicas), func(c *cluster) {
		c.update(fooID(name), func(object runtime.Object) { object.(*samplev1alpha1.Foo).Spec.Replicas = &replicas })
	}}
}

func rename(name, deploymentName string) step {
	return step{fmt.Sprintf("give Foo %s the Deployment name %s", name, deploymentName), func(c *cluster) {
		c.update(fooID(name), func(object runtime.Object) {
			object.(*samplev1alpha1.Foo).Spec.DeploymentName = deploymentName
		})
	}}
}

func deleteFoo(name string) step {
	return step{"delete Foo " + name, func(c *cluster) { c.delete(fooID(name), metav1.DeletePropagationBackground) }}
}

func deleteFooInForeground(name string) step {
	return step{"delete Foo " + name + " in the foreground", func(c *cluster) {
		c.delete(fooID(name), metav1.DeletePropagationForeground)
	}}
}

func createForeign(name string) step {
	return step{"create a Deployment " + name + " by hand", func(c *cluster) { c.create(newForeign(name)) }}
}

func deleteDeployment(name string) step {
	return step{"delete Deployment " + name, func(c *cluster) {
		c.delete(deploymentID(name), metav1.DeletePropagationBackground)
	}}
}

// drift changes each owned field of a Deployment.
func drift(name string) step {
	return step{"change owned fields of Deployment " + name, func(c *cluster) {
		c.updateDeployment(name, func(deployment *appsv1.Deployment) {
			nine := int32(9)
			deployment.Spec.Replicas = &nine
			deployment.Spec.Template.Labels["app"] = "drifted"
			for i := range deployment.Spec.Template.Spec.Containers {
				deployment.Spec.Template.Spec.Containers[i].Image = "drifted:1"
			}
		})
	}}
}

// edit changes fields of a Deployment that no Foo owns.
func edit(name, note string) step {
	return step{"change unowned fields of Deployment " + name, func(c *cluster) {
		c.updateDeployment(name, func(deployment *appsv1.Deployment) {
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
	return step{fmt.Sprintf("scale Deployment %s to %d", name, replicas), func(c *cluster) {
		c.updateDeployment(name, func(deployment *appsv1.Deployment) { deployment.Spec.Replicas = &replicas })
	}}
}

// handOver adds the annotation that consents to the adoption of a Deployment by a Foo.
func handOver(name, fooName string) step {
	return step{"hand Deployment " + name + " over to Foo " + fooName, func(c *cluster) {
		c.updateDeployment(name, func(deployment *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, "samplecontroller.k8s.io/adopt-by", fooName)
		})
	}}
}

// atOnce makes several changes in quick succession, with just enough time between them
// for a controller to see each.
func atOnce(steps ...step) step {
	all := step{name: "at once"}
	for _, s := range steps {
		all.name += ", " + s.name
	}
	all.do = func(c *cluster) {
		for _, s := range steps {
			s.do(c)
			advance(time.Millisecond)
		}
	}
	return all
}

// create creates an object. It waits while the name is taken, for example by an object in
// deletion.
func (c *cluster) create(object runtime.Object) {
	c.try(idOf(object), func() error {
		_, err := c.api.create(object, noInspection)
		return err
	})
}

// update changes an object. It waits for an object that does not exist yet.
func (c *cluster) update(id objectID, change func(runtime.Object)) {
	c.try(id, func() error {
		object, err := c.api.get(id)
		if err != nil {
			return err
		}
		change(object)
		_, err = c.api.update(object, "", noInspection)
		return err
	})
}

func (c *cluster) updateDeployment(name string, change func(*appsv1.Deployment)) {
	c.update(deploymentID(name), func(object runtime.Object) { change(object.(*appsv1.Deployment)) })
}

func (c *cluster) delete(id objectID, propagation metav1.DeletionPropagation) {
	c.try(id, func() error {
		return c.api.delete(id, metav1.DeleteOptions{PropagationPolicy: &propagation}, noInspection)
	})
}

// try repeats a user's write until it succeeds, at most for userTimeout.
func (c *cluster) try(id objectID, write func() error) {
	for began := time.Now(); ; advance(time.Second) {
		err := write()
		if err == nil {
			return
		}
		if time.Since(began) >= userTimeout {
			c.tracef("user: gave up on %s: %v", id, err)
			return
		}
	}
}
