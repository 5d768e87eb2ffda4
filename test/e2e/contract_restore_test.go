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

// The contract: Foos and Deployments that are restored from a backup of objects.

package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// TestAfterARestoreOfObjectsAFooGetsANewDeployment restores objects as Velero does: Foos
// get new UIDs. A Deployment whose owner reference has the old UID has no owner any more.
// The garbage collector deletes it, and the Foo gets a new one.
func TestAfterARestoreOfObjectsAFooGetsANewDeployment(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t)
	foo, saved := ns.backUpAndDelete(t)
	restored := ns.restore(t, saved)
	created := ns.createFoo(t, newFoo(foo.Name))
	awaitOne(t, "the Foo has a Deployment of its own", ns.deployments(), saved.Name, func(deployment *appsv1.Deployment) error {
		if !metav1.IsControlledBy(deployment, created) {
			return errNone
		}
		return nil
	})
	ns.awaitReady(t, foo.Name)
	if ns.getDeployment(t, saved.Name).UID == restored.UID {
		t.Error("The restored Deployment still exists, with another owner")
	}
}

// TestAfterARestoreOfObjectsAnAnnotatedDeploymentIsKept restores a Deployment without its
// owner reference but with the annotation that consents to adoption. It and its Pods
// stay.
func TestAfterARestoreOfObjectsAnAnnotatedDeploymentIsKept(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t)
	foo, saved := ns.backUpAndDelete(t)
	saved.OwnerReferences = nil
	metav1.SetMetaDataAnnotation(&saved.ObjectMeta, samplev1alpha1.AnnotationAdoptBy, foo.Name)
	restored := ns.restore(t, saved)
	created := ns.createFoo(t, newFoo(foo.Name))
	ns.awaitReady(t, foo.Name)
	kept := ns.getDeployment(t, saved.Name)
	if kept.UID != restored.UID || !metav1.IsControlledBy(kept, created) {
		t.Errorf("The Deployment is %s, owned by %v; want %s, owned by the new Foo", kept.UID, kept.OwnerReferences, restored.UID)
	}
	if !equality.Semantic.DeepEqual(kept.Spec, restored.Spec) {
		t.Errorf("The spec of the restored Deployment has changed, so its Pods were replaced: %v", kept.Spec)
	}
}

// backUpAndDelete creates a Foo, reads it and its Deployment as a backup would, and
// deletes them.
func (ns *namespace) backUpAndDelete(t *testing.T) (*samplev1alpha1.Foo, *appsv1.Deployment) {
	t.Helper()
	foo := ns.createReadyFoo(t, newFoo("restored", withReplicas(1)))
	saved := ns.getDeployment(t, foo.Spec.DeploymentName)
	ns.deleteFoo(t, foo.Name, metav1.DeletePropagationForeground)
	awaitGone(t, ns.foos(), foo.Name)
	awaitGone(t, ns.deployments(), saved.Name)
	return foo, saved
}

// restore creates a Deployment again, as an administrator.
func (ns *namespace) restore(t *testing.T, saved *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	saved.UID, saved.ResourceVersion, saved.ManagedFields, saved.Status = "", "", nil, appsv1.DeploymentStatus{}
	restored, err := ns.deployments().Create(t.Context(), saved, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return restored
}
