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

package main

import (
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// admission is what stands between controllers and Deployments for a while: a
// webhook, or a policy.
type admission struct {
	until time.Time
	// refuse answers a write, where it is not nil; change changes it.
	refuse func() error
	change func(*appsv1.Deployment)
}

// admissionFaults last longer than until the next step's change.
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

// admittedBy is the fault that an admission comes into force, this call included.
func admittedBy(name string, a admission) fault {
	return fault{name: name, call: func(r *request) (runtime.Object, error) {
		w := r.session.world
		a := a
		a.until = time.Now().Add(past)
		w.mu.Lock()
		w.admission = a
		w.mu.Unlock()
		// Nobody is told that a policy is gone, so that somebody has to touch what
		// it has changed.
		time.AfterFunc(past+time.Millisecond, w.touchDeployments)
		return r.commit()
	}}
}

// admit returns what is to be stored where a controller sends a Deployment.
func (w *world) admit(sent runtime.Object) (runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	deployment, ok := sent.(*appsv1.Deployment)
	if !ok || !time.Now().Before(w.admission.until) {
		return sent, nil
	}
	if refuse := w.admission.refuse; refuse != nil {
		return nil, refuse()
	}
	changed := deployment.DeepCopy()
	w.admission.change(changed)
	return changed, nil
}

// changesWrites reports whether a policy may undo what a controller sends.
func (w *world) changesWrites() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.admission.change != nil && time.Now().Before(w.admission.until)
}

// touchDeployments sets and removes an annotation, which raises the generation.
func (w *world) touchDeployments() {
	for _, object := range w.api.list("deployments", w.api.version()) {
		for _, touched := range []bool{true, false} {
			w.touch(idOf(object), touched)
		}
	}
}

func (w *world) touch(id objectID, touched bool) {
	for w.ctx.Err() == nil {
		object, err := w.api.get(id)
		if err != nil {
			return
		}
		if touched {
			deployment := object.(*appsv1.Deployment)
			metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, "touched", "true")
		} else {
			delete(metaOf(object).GetAnnotations(), "touched")
		}
		if _, err := w.api.update(object, "", anything); err == nil {
			return
		}
	}
}
