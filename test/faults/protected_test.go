// SPDX-License-Identifier: Apache-2.0

// What a controller must not change: Deployments of other writers, and what other writers
// added to a Foo's Deployment.

package faults

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
)

// protected is a Deployment, or a part of one, that the controller must leave as it is.
type protected struct {
	deployment string
	// changed returns an error that says what differs, or nil.
	changed func(*appsv1.Deployment) error
}

// checkProtected returns an error if a protected object has changed.
func (tr *trial) checkProtected(ctx context.Context) error {
	var errs []error
	for _, o := range tr.protected {
		d, err := tr.deployments().Get(ctx, o.deployment, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("Deployment %s, which belongs to others, is gone", o.deployment))
		case err != nil:
			errs = append(errs, err)
		default:
			errs = append(errs, o.changed(d))
		}
	}
	return errors.Join(errs...)
}

// protect makes the oracle check that a Deployment stays as it is, except for its status.
func (tr *trial) protect(before *appsv1.Deployment) {
	tr.protected = append(tr.protected, protected{deployment: before.Name, changed: func(now *appsv1.Deployment) error {
		if now.UID != before.UID || now.Generation != before.Generation || !equality.Semantic.DeepEqual(now.Spec, before.Spec) ||
			!equality.Semantic.DeepEqual(now.OwnerReferences, before.OwnerReferences) || now.DeletionTimestamp != nil {
			return fmt.Errorf("Deployment %s, which belongs to others, has been changed: %s%s", now.Name,
				diff.Diff(before.OwnerReferences, now.OwnerReferences), diff.Diff(before.Spec, now.Spec))
		}
		return nil
	}})
}

// protectAnnotation makes the oracle check that an annotation stays on a Deployment.
func (tr *trial) protectAnnotation(deployment, key, value string) {
	tr.protected = append(tr.protected, protected{deployment: deployment, changed: func(now *appsv1.Deployment) error {
		if now.Annotations[key] != value {
			return fmt.Errorf("annotation %s=%s, which somebody else put on Deployment %s, is gone", key, value, deployment)
		}
		return nil
	}})
}
