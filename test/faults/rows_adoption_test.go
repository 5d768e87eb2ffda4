// SPDX-License-Identifier: Apache-2.0

// Rows about adopted Deployments: G8, and the long selector of G7.

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// adopt creates a Deployment that asks for adoption, and the Foo that adopts it.
func (tr *trial) adopt(ctx context.Context, options ...func(*appsv1.Deployment)) error {
	asking := func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{samplev1alpha1.AnnotationAdoptBy: "a"}
	}
	_, err := tr.deployments().Create(ctx, newDeployment("a", append(options, asking)...), metav1.CreateOptions{FieldManager: "somebody"})
	return errors.Join(err, tr.createFoo(ctx, "a", "a", 2), tr.settled(ctx))
}

// adoptedOnce is G8: to hand a Deployment over once does not hand it over for ever.
func adoptedOnce(writeCounts) []trialCase {
	adopted := func(name string, change func(context.Context, *trial) error) trialCase {
		return trialCase{name, func(ctx context.Context, tr *trial) error {
			r, err := tr.start()
			if err != nil {
				return err
			}
			if err := tr.adopt(ctx); err != nil {
				return err
			}
			return errors.Join(change(ctx, tr), tr.stableAndQuiet(ctx), r.checkAdoptByRemoved())
		}}
	}
	return []trialCase{
		adopted("the owner is taken away", takeAway),
		adopted("an orphan, and a Foo of the same name", func(ctx context.Context, tr *trial) error {
			return errors.Join(tr.orphan(ctx), tr.createFoo(ctx, "a", "a", 1))
		}),
	}
}

// checkAdoptByRemoved returns an error unless the update that adopts a Deployment removes
// the annotation that asked for it.
func (r *replica) checkAdoptByRemoved() error {
	for _, call := range r.proxy.Calls() {
		var d appsv1.Deployment
		if !isUpdate(call) || json.Unmarshal(call.Answer, &d) != nil || metav1.GetControllerOf(&d) == nil {
			continue
		}
		if d.Annotations[samplev1alpha1.AnnotationAdoptBy] != "" {
			return errors.New("it adopted the Deployment and left the annotation that asked for it")
		}
	}
	return nil
}

// longSelector is G7: the selector of an adopted Deployment is longer than a status may
// hold, and a part of it would select other Pods.
func longSelector(writeCounts) []trialCase {
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
