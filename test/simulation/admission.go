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

// Faults of admission: webhooks and policies that refuse or change a controller's writes
// for some time.

package simulation

import (
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// admission is a webhook or policy for the controllers' writes of Deployments.
type admission struct {
	until time.Time
	// refuse returns the error for a write. If refuse is nil, change modifies the
	// Deployment.
	refuse func() error
	change func(*appsv1.Deployment)
}

// admissionFaults last until after the change of the next step.
var admissionFaults = []fault{
	admittedBy("webhook down from here", admission{refuse: func() error {
		return apierrors.NewInternalError(errors.New(`failed calling webhook "deny.example.com": connection refused`))
	}}),
	admittedBy("429 with Retry-After from here", admission{refuse: func() error {
		return apierrors.NewTooManyRequests("too many requests, please try again later", 3)
	}}),
	admittedBy("images mirrored from here", admission{change: func(deployment *appsv1.Deployment) {
		for i := range deployment.Spec.Template.Spec.Containers {
			if container := &deployment.Spec.Template.Spec.Containers[i]; container.Name == "nginx" {
				container.Image = "mirror.example.com/nginx:latest"
			}
		}
	}}),
}

// admittedBy returns the fault that puts an admission in force, from this call on.
func admittedBy(name string, a admission) fault {
	return fault{name: name, call: func(r *request) (runtime.Object, error) {
		c := r.conn.cluster
		a := a
		a.until = time.Now().Add(longDelay)
		c.mu.Lock()
		c.admission = a
		c.mu.Unlock()
		// The end of a policy causes no event. A user touches the Deployments, so that
		// the controller notices.
		time.AfterFunc(longDelay+time.Millisecond, c.touchDeployments)
		return r.commit()
	}}
}

// admit returns the object that the API server stores when a controller sends one.
func (c *cluster) admit(sent runtime.Object) (runtime.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	deployment, ok := sent.(*appsv1.Deployment)
	if !ok || !time.Now().Before(c.admission.until) {
		return sent, nil
	}
	if refuse := c.admission.refuse; refuse != nil {
		return nil, refuse()
	}
	changed := deployment.DeepCopy()
	c.admission.change(changed)
	return changed, nil
}

// mutatesWrites reports whether a policy may undo a controller's writes.
func (c *cluster) mutatesWrites() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.admission.change != nil && time.Now().Before(c.admission.until)
}

// touchDeployments sets and removes an annotation of each Deployment, which raises the
// generation.
func (c *cluster) touchDeployments() {
	for _, object := range c.api.list("deployments", c.api.version()) {
		for _, touched := range []bool{true, false} {
			c.touch(idOf(object), touched)
		}
	}
}

func (c *cluster) touch(id objectID, touched bool) {
	for c.ctx.Err() == nil {
		object, err := c.api.get(id)
		if err != nil {
			return
		}
		if touched {
			deployment := object.(*appsv1.Deployment)
			metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, "touched", "true")
		} else {
			delete(metaOf(object).GetAnnotations(), "touched")
		}
		if _, err := c.api.update(object, "", noInspection); err == nil {
			return
		}
	}
}
