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

package testcluster

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// permissionLimit bounds how long the API server takes to learn of permissions, policies and kinds.
const permissionLimit = 90 * time.Second

// FoosDeployment returns a Deployment as the controller makes it for a Foo of that name; of the number of Pods it says nothing.
func FoosDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": "nginx", "controller": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: name, UID: "00000000-0000-0000-0000-000000000000",
			Controller: new(true), BlockOwnerDeletion: new(true),
		}}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}
}

// AwaitFoosAsOwners waits until an account may make a Deployment for a Foo of a namespace. The admission plugin
// OwnerReferencesPermissionEnforcement reads only every 30 s which kinds there are, and refuses owners of a newer kind.
func AwaitFoosAsOwners(ctx context.Context, account *rest.Config, namespace string) error {
	return awaitCreation(ctx, account, namespace, "a Deployment can have a Foo as its owner", FoosDeployment("foo"), Succeeded)
}

// AwaitPolicy waits until the admission policy refuses the controller's account a Deployment that is no Foo's.
func AwaitPolicy(ctx context.Context, account *rest.Config, namespace string) error {
	nobodys := FoosDeployment("nobodys")
	nobodys.OwnerReferences = nil
	return awaitCreation(ctx, account, namespace, "the admission policy is in force", nobodys, IsDeniedByPolicy)
}

func awaitCreation(ctx context.Context, account *rest.Config, namespace, what string, deployment *appsv1.Deployment, wanted func(error) bool) error {
	client, err := kubernetes.NewForConfig(account)
	if err != nil {
		return err
	}
	return AwaitAnswer(ctx, permissionLimit, what, func(ctx context.Context) error {
		_, err := client.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}, wanted)
}

// IsDeniedByPolicy reports whether the controller's admission policy refused a request.
func IsDeniedByPolicy(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '") && strings.Contains(err.Error(), "sample-controller may ")
}
