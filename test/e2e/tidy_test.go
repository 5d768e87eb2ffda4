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

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// tidyUp removes what the run has made and waits until it is gone. What is
// left after that is named in the error.
func (c *testCluster) tidyUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience())
	defer cancel()
	err := errors.Join(c.removeRights(ctx), c.removeNamespaces(ctx))
	if c.definition == definitionInstalled {
		err = errors.Join(err, c.removeDefinition(ctx))
	}
	return err
}

// removeNamespaces deletes the run's namespaces, those too that a test may
// still make after an interruption.
func (c *testCluster) removeNamespaces(ctx context.Context) error {
	client := c.kube.CoreV1().Namespaces()
	ours := c.ofThisRun()
	_, err := untilList(ctx, client, ours, func(list *corev1.NamespaceList) error {
		var errs []error
		for i := range list.Items {
			ns := &list.Items[i]
			errs = append(errs, fmt.Errorf("namespace %s is left: see kubectl get namespaces -l %s", ns.Name, ours.LabelSelector))
			if ns.DeletionTimestamp != nil {
				continue
			}
			errs = append(errs, c.releaseHeld(ctx, ns.Name))
			if err := client.Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				errs = append(errs, fmt.Errorf("deleting it: %w", err))
			}
		}
		return errors.Join(errs...)
	})
	return err
}

func (c *testCluster) ofThisRun() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: runLabel + "=" + c.run}
}

// removeRights removes what is in no namespace: roles, admission policies,
// webhooks and flow schemas, those too that an interrupted test has left.
func (c *testCluster) removeRights(ctx context.Context) error {
	admission, rbac := c.kube.AdmissionregistrationV1(), c.kube.RbacV1()
	now, ours := metav1.DeleteOptions{}, c.ofThisRun()
	return errors.Join(
		admission.MutatingWebhookConfigurations().DeleteCollection(ctx, now, ours),
		admission.ValidatingWebhookConfigurations().DeleteCollection(ctx, now, ours),
		admission.ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, now, ours),
		admission.ValidatingAdmissionPolicies().DeleteCollection(ctx, now, ours),
		c.kube.FlowcontrolV1().FlowSchemas().DeleteCollection(ctx, now, ours),
		rbac.ClusterRoleBindings().DeleteCollection(ctx, now, ours),
		rbac.ClusterRoles().DeleteCollection(ctx, now, ours))
}

// releaseHeld takes the tests' finalizer from what a namespace holds.
func (c *testCluster) releaseHeld(ctx context.Context, name string) error {
	ns := &namespace{name: name, in: c}
	foos, err1 := ns.foos().List(ctx, metav1.ListOptions{})
	deployments, err2 := ns.deployments().List(ctx, metav1.ListOptions{})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var errs []error
	for i := range foos.Items {
		if slices.Contains(foos.Items[i].Finalizers, hold) {
			errs = append(errs, releaseNow(ctx, ns.foos(), foos.Items[i].Name))
		}
	}
	for i := range deployments.Items {
		if slices.Contains(deployments.Items[i].Finalizers, hold) {
			errs = append(errs, releaseNow(ctx, ns.deployments(), deployments.Items[i].Name))
		}
	}
	return errors.Join(errs...)
}

func (c *testCluster) removeDefinition(ctx context.Context) error {
	client := definitions(c.dynamic)
	if err := client.Delete(ctx, definitionName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the CustomResourceDefinition that this run has installed: %w", err)
	}
	_, err := untilList(ctx, client, named(definitionName), func(list *unstructured.UnstructuredList) error {
		if len(list.Items) > 0 {
			return fmt.Errorf("CustomResourceDefinition %s is not gone yet", definitionName)
		}
		return nil
	})
	return err
}
