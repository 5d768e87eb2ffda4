// SPDX-License-Identifier: Apache-2.0

// The end of a run: everything that it created is deleted.

package e2e

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// tidyUp deletes the objects of the run and waits until they are gone. The error names
// objects that are left.
func (c *testCluster) tidyUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience())
	defer cancel()
	err := errors.Join(c.removeClusterScoped(ctx), c.removeNamespaces(ctx))
	if c.crd == crdInstalled {
		err = errors.Join(err, c.removeCRD(ctx, crdName))
	}
	for _, name := range c.otherCRDs {
		err = errors.Join(err, c.removeCRD(ctx, name))
	}
	return err
}

// removeNamespaces deletes the run's namespaces, including those that a test still
// creates after an interruption.
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

// removeClusterScoped deletes the run's cluster-scoped objects: roles, admission
// policies, webhooks and flow schemas, including those that an interrupted test has left.
func (c *testCluster) removeClusterScoped(ctx context.Context) error {
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

func (c *testCluster) removeCRD(ctx context.Context, name string) error {
	client := crdClient(c.dynamic)
	if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the CustomResourceDefinition that this run installed: %w", err)
	}
	_, err := untilList(ctx, client, named(name), func(list *unstructured.UnstructuredList) error {
		if len(list.Items) > 0 {
			return fmt.Errorf("CustomResourceDefinition %s is not gone yet", name)
		}
		return nil
	})
	return err
}
