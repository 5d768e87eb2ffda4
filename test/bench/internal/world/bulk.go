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

package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/bench/internal/devcluster"
	"example.com/sample-controller/test/bench/internal/objects"
)

// WaitingFoos makes Foos with the numbers from first to first+n-1, in namespaces
// of the caller's choice, that nobody has done anything about: the first and the
// last through the API, the others as copies of the first, as in SettledFoos.
// Everything has been created at the last one's resourceVersion.
func WaitingFoos(ctx context.Context, cluster *devcluster.Cluster, namespace func(number int) string, first, n int) ([]*samplev1alpha1.Foo, error) {
	begin, err := FoosIn(ctx, cluster, namespace, first, min(n, 1))
	if err != nil || n < 2 {
		return begin, err
	}
	s, err := openStore(cluster)
	if err != nil {
		return nil, err
	}
	defer s.close()
	// Not as a Foo, which has a status even where none has been written.
	var stored unstructured.Unstructured
	if err := s.foos.read(ctx, begin[0].Namespace, begin[0].Name, &stored); err != nil {
		return nil, err
	}
	copies := make([]*samplev1alpha1.Foo, n-2)
	err = s.write(ctx, first+1, n-2, func(number int) ([]clientv3.Op, error) {
		foo := copyFoo(begin[0], namespace(number), number)
		copies[number-first-1] = foo
		stored := stored.DeepCopy()
		stored.SetNamespace(foo.Namespace)
		stored.SetName(foo.Name)
		stored.SetUID(foo.UID)
		if err := unstructured.SetNestedField(stored.Object, foo.Spec.DeploymentName, "spec", "deploymentName"); err != nil {
			return nil, err
		}
		put, err := s.foos.put(stored)
		return []clientv3.Op{put}, err
	})
	if err != nil {
		return nil, fmt.Errorf("copying Foo %s/%s: %w", begin[0].Namespace, begin[0].Name, err)
	}
	end, err := FoosIn(ctx, cluster, namespace, first+n-1, 1)
	if err != nil {
		return nil, err
	}
	return slices.Concat(begin, copies, end), awaitFoo(ctx, cluster, end[0].Namespace, end[0].Name)
}

// SettledFoos makes Foos with the numbers from first to first+n-1 as the
// controller leaves them: with a Deployment and a status. Through the API that
// is three writes for each Foo, minutes for many; here only the first comes from
// the API, and etcd is given copies of it.
func SettledFoos(ctx context.Context, cluster *devcluster.Cluster, first, n int) error {
	if n == 0 {
		return nil
	}
	made, err := Foos(ctx, cluster, first, 1)
	if err != nil {
		return err
	}
	if err := objects.Settle(ctx, cluster.Kube, cluster.Foos, made[0]); err != nil {
		return fmt.Errorf("settling Foo %s/%s: %w", made[0].Namespace, made[0].Name, err)
	}
	s, err := openStore(cluster)
	if err != nil {
		return err
	}
	defer s.close()
	var foo samplev1alpha1.Foo
	var deployment appsv1.Deployment
	if err := errors.Join(s.foos.read(ctx, Namespace(first), Name(first), &foo),
		s.deployments.read(ctx, Namespace(first), Name(first), &deployment)); err != nil {
		return err
	}
	err = s.write(ctx, first+1, n-1, func(number int) ([]clientv3.Op, error) {
		foo := objects.WithStatus(copyFoo(&foo, Namespace(number), number))
		deployment := copyDeployment(&deployment, objects.Deployment(foo))
		putFoo, errFoo := s.foos.put(foo)
		putDeployment, errDeployment := s.deployments.put(deployment)
		return []clientv3.Op{putFoo, putDeployment}, errors.Join(errFoo, errDeployment)
	})
	if err != nil {
		return fmt.Errorf("copying Foo %s/%s: %w", foo.Namespace, foo.Name, err)
	}
	last := first + n - 1
	return errors.Join(awaitFoo(ctx, cluster, Namespace(last), Name(last)), awaitDeployment(ctx, cluster, Namespace(last), Name(last)))
}

// ForeignDeployments makes Deployments that no Foo has to do with, with the
// numbers from first to first+n-1: copies of the first, as in SettledFoos.
func ForeignDeployments(ctx context.Context, cluster *devcluster.Cluster, first, n int) error {
	if n == 0 {
		return nil
	}
	foreign := func(number int) *appsv1.Deployment {
		return objects.Foreign(Namespace(number), fmt.Sprintf("foreign-%d", number))
	}
	made, err := cluster.Kube.AppsV1().Deployments(Namespace(first)).Create(ctx, foreign(first), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a foreign Deployment: %w", err)
	}
	s, err := openStore(cluster)
	if err != nil {
		return err
	}
	defer s.close()
	var deployment appsv1.Deployment
	if err := s.deployments.read(ctx, made.Namespace, made.Name, &deployment); err != nil {
		return err
	}
	err = s.write(ctx, first+1, n-1, func(number int) ([]clientv3.Op, error) {
		put, err := s.deployments.put(copyDeployment(&deployment, foreign(number)))
		return []clientv3.Op{put}, err
	})
	if err != nil {
		return fmt.Errorf("copying Deployment %s/%s: %w", made.Namespace, made.Name, err)
	}
	last := foreign(first + n - 1)
	return awaitDeployment(ctx, cluster, last.Namespace, last.Name)
}

// copyFoo returns the Foo with a number, in the state of another.
func copyFoo(from *samplev1alpha1.Foo, namespace string, number int) *samplev1alpha1.Foo {
	wanted := objects.Foo(namespace, Name(number))
	foo := from.DeepCopy()
	foo.Namespace, foo.Name, foo.UID = wanted.Namespace, wanted.Name, uuid.NewUUID()
	foo.Spec = wanted.Spec
	return foo
}

// copyDeployment returns the Deployment that is wanted, in the state of another.
func copyDeployment(from, wanted *appsv1.Deployment) *appsv1.Deployment {
	deployment := from.DeepCopy()
	deployment.Namespace, deployment.Name, deployment.UID = wanted.Namespace, wanted.Name, uuid.NewUUID()
	deployment.OwnerReferences = wanted.OwnerReferences
	deployment.Spec.Selector = wanted.Spec.Selector
	deployment.Spec.Template.Labels = wanted.Spec.Template.Labels
	// Managed fields name an owner by its UID.
	for i, owner := range from.OwnerReferences {
		for _, managed := range deployment.ManagedFields {
			fields := managed.FieldsV1
			fields.SetRawString(strings.ReplaceAll(fields.GetRawString(), string(owner.UID), string(wanted.OwnerReferences[i].UID)))
		}
	}
	return deployment
}
