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

// other is something of others in the namespace: a Deployment, or a part of one.
type other struct {
	deployment string
	// changed says what is no longer as it was, or nil.
	changed func(*appsv1.Deployment) error
	// mayGo tells that the Deployment need not be there any more.
	mayGo bool
}

// harm returns what of others has changed.
func (tr *trial) harm(ctx context.Context) error {
	var errs []error
	for _, o := range tr.others {
		d, err := tr.deployments().Get(ctx, o.deployment, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && o.mayGo:
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

// leaveAlone has the oracle see to it that a Deployment stays as it is, but for its status.
func (tr *trial) leaveAlone(before *appsv1.Deployment) {
	tr.others = append(tr.others, other{deployment: before.Name, changed: func(now *appsv1.Deployment) error {
		if now.UID != before.UID || now.Generation != before.Generation || !equality.Semantic.DeepEqual(now.Spec, before.Spec) ||
			!equality.Semantic.DeepEqual(now.OwnerReferences, before.OwnerReferences) || now.DeletionTimestamp != nil {
			return fmt.Errorf("Deployment %s, which belongs to others, has been changed: %s%s", now.Name,
				diff.Diff(before.OwnerReferences, now.OwnerReferences), diff.Diff(before.Spec, now.Spec))
		}
		return nil
	}})
}

// keepAnnotation has the oracle see to it that an annotation stays on a Deployment.
func (tr *trial) keepAnnotation(deployment, key, value string) {
	tr.others = append(tr.others, other{deployment: deployment, changed: func(now *appsv1.Deployment) error {
		if now.Annotations[key] != value {
			return fmt.Errorf("annotation %s=%s, which somebody else put on Deployment %s, is gone", key, value, deployment)
		}
		return nil
	}})
}
