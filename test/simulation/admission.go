// SPDX-License-Identifier: Apache-2.0

// Faults of admission: webhooks and policies that refuse or change a controller's writes
// for some time.

package simulation

import (
	"errors"
	"maps"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/model"
)

// admissionFaults last until after the change of the next step.
var admissionFaults = []fault{
	admittedBy("webhook down from here",
		apierrors.NewInternalError(errors.New(`failed calling webhook "deny.example.com": connection refused`))),
	admittedBy("429 with Retry-After from here", apierrors.NewTooManyRequests("too many requests, please try again later", 3)),
	admittedBy("webhook denies with 409 from here", model.Denial(http.StatusConflict)),
	admittedBy("webhook denies with 404 from here", model.Denial(http.StatusNotFound)),
	admittedBy("owned fields changed from here", nil),
}

// admittedBy returns the fault in which writes are refused or, without a refusal, changed, from
// this call on.
func admittedBy(name string, refusal error) fault {
	return fault{name: name, call: func(r *request) (any, error) {
		c := r.conn.cluster
		c.mu.Lock()
		if end := time.Now().Add(longDelay); refusal == nil {
			c.mutatedUntil = end
		} else {
			c.refusal, c.refusedUntil = refusal, end
		}
		c.mu.Unlock()
		// The end of a policy causes no event. A user touches the children, so that the
		// controller notices.
		time.AfterFunc(longDelay+time.Millisecond, c.touchChildren)
		return r.commit()
	}}
}

// admit returns the object that the API server stores when a controller sends one.
func (c *cluster) admit(sent footest.Object) (footest.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := footest.KindOf(sent)
	if kind == c.owner.Kind {
		return sent, nil
	}
	if time.Now().Before(c.refusedUntil) {
		return nil, c.refusal
	}
	if !time.Now().Before(c.mutatedUntil) {
		return sent, nil
	}
	changed := copyOf(sent)
	if ref := metav1.GetControllerOf(changed); ref != nil {
		if foo, err := c.api.get(objectID{c.owner.Kind, ref.Name}); err == nil {
			kind.Drift(changed, foo)
		}
	}
	return changed, nil
}

// mutatesWrites reports whether a policy may undo a controller's writes.
func (c *cluster) mutatesWrites() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.mutatedUntil)
}

// touchChildren sets and removes an annotation of each child, which changes its version,
// and a field of the spec that nobody owns, which changes its generation.
func (c *cluster) touchChildren() {
	for _, object := range c.world().Objects {
		if c.owner.Is(object) {
			continue
		}
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
		annotations := map[string]string{"touched": "true"}
		maps.Copy(annotations, object.GetAnnotations())
		if !touched {
			delete(annotations, "touched")
		}
		object.SetAnnotations(annotations)
		r := model.Request{Verb: "update", Kind: id.kind, Name: id.name, Sent: object}
		if _, err := c.api.write(r, noInspection); err == nil {
			c.api.raiseGeneration(id)
			return
		}
	}
}
