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
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// adopt makes a Deployment that asks for adoption, and a Foo that adopts it.
func (tr *trial) adopt(ctx context.Context, options ...func(*appsv1.Deployment)) error {
	asking := func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{samplev1alpha1.AnnotationAdoptBy: "a"}
	}
	_, err := tr.deployments().Create(ctx, newDeployment("a", append(options, asking)...), metav1.CreateOptions{FieldManager: "somebody"})
	return errors.Join(err, tr.createFoo(ctx, "a", "a", 2), tr.settled(ctx))
}

// spentConsent is G8: who has handed a Deployment over once has not done so for
// ever.
func spentConsent(counted) []trialCase {
	spent := func(name string, part func(context.Context, *trial) error) trialCase {
		return trialCase{name, func(ctx context.Context, tr *trial) error {
			r, err := tr.start()
			if err != nil {
				return err
			}
			if err := tr.adopt(ctx); err != nil {
				return err
			}
			return errors.Join(part(ctx, tr), tr.stableAndQuiet(ctx), r.spends())
		}}
	}
	return []trialCase{
		spent("the owner is taken away", func(ctx context.Context, tr *trial) error {
			d, err := tr.deployments().Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{FieldManager: "somebody"})
			if err == nil {
				tr.leaveAlone(d)
			}
			return err
		}),
		spent("an orphan, and a Foo of the same name", func(ctx context.Context, tr *trial) error {
			return errors.Join(tr.orphan(ctx), tr.createFoo(ctx, "a", "a", 1))
		}),
	}
}

// spends returns an error unless the update that adopts a Deployment removes what
// has asked for it.
func (r *replica) spends() error {
	for _, call := range r.proxy.Calls() {
		var d appsv1.Deployment
		if !isUpdate(call) || json.Unmarshal(call.Answer, &d) != nil || metav1.GetControllerOf(&d) == nil {
			continue
		}
		if d.Annotations[samplev1alpha1.AnnotationAdoptBy] != "" {
			return errors.New("it has adopted the Deployment, and left the annotation that had asked for it")
		}
	}
	return nil
}

// longSelector is G7: the selector of an adopted Deployment is longer than a
// status takes, and a part of it would select other Pods.
func longSelector(counted) []trialCase {
	return []trialCase{{"of 6,000 characters", func(ctx context.Context, tr *trial) error {
		if _, err := tr.start(); err != nil {
			return err
		}
		values := []string{"nginx"}
		for i := range 100 {
			values = append(values, fmt.Sprintf("%03d-%s", i, strings.Repeat("x", 56)))
		}
		err := tr.adopt(ctx, func(d *appsv1.Deployment) {
			d.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values},
			}}
		})
		if err != nil {
			return err
		}
		foo, err := tr.foosClient().Get(ctx, "a", metav1.GetOptions{})
		if err == nil && foo.Status.Selector != "" {
			err = fmt.Errorf("status.selector has %d characters", len(foo.Status.Selector))
		}
		return errors.Join(err, tr.scaleFoo(ctx, "a", 3), tr.stableAndQuiet(ctx))
	}}}
}
