// SPDX-License-Identifier: Apache-2.0

// The replay of a path on a real API server, with calls that are sent again, and the
// comparison.

package explore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/test/footest"
)

// realServer is the API server that the model is compared with, in the namespace of a path.
type realServer interface {
	// do sends a request. The object of the answer is nil for a delete.
	do(ctx context.Context, kind *footest.Kind, name string, sent *request) (footest.Object, error)
	// watch returns the events of a kind, from the beginning of the namespace.
	watch(ctx context.Context, kind *footest.Kind) (watch.Interface, error)
}

// eventLimit is how long an event may take to arrive.
const eventLimit = 30 * time.Second

// replay is the replay of a path.
type replay struct {
	*scene
	*translation

	server  realServer
	watches []watch.Interface // by resource
}

// replayOn sends the requests of a path to a server, and returns what differs first, with
// the path up to there, or "".
func (s *scene) replayOn(ctx context.Context, server realServer, namespace string, path []exchange) (difference string, err error) {
	r := &replay{scene: s, translation: newTranslation(namespace), server: server}
	defer r.stop()
	for _, kind := range s.kinds {
		events, err := server.watch(ctx, kind)
		if err != nil {
			return "", fmt.Errorf("watching %ss: %w", kind, err)
		}
		r.watches = append(r.watches, events)
	}
	for i := range path {
		differences, err := r.compare(ctx, &path[i])
		if err != nil {
			return "", fmt.Errorf("replaying %s: %w", s.tell(path[:i+1]), err)
		}
		if len(differences) > 0 {
			return s.tell(path[:i+1]) + "\n" + strings.Join(differences, "\n"), nil
		}
	}
	differences, err := r.compareEnd(ctx)
	if err != nil || len(differences) == 0 {
		return "", err
	}
	return s.tell(path) + "\n" + strings.Join(differences, "\n"), nil
}

func (r *replay) stop() {
	for _, events := range r.watches {
		events.Stop()
	}
}

// tell lists the requests of a path.
func (s *scene) tell(path []exchange) string {
	var text strings.Builder
	for i := range path {
		answer := "ok"
		if path[i].err != nil {
			answer = describeAnswer(path[i].err)
		}
		fmt.Fprintf(&text, "%3d. %s: %s -> %s\n", i+1, path[i].step, path[i].describe(explored{nil, s}), answer)
	}
	return text.String()
}

// compare sends a request, and returns how the server differs from the model in the answer,
// the events, and what is stored.
func (r *replay) compare(ctx context.Context, e *exchange) ([]string, error) {
	sent, err := r.toServer(e.sent)
	if err != nil {
		return nil, err
	}
	kind, name := r.kindOf(e.slot), r.names[e.slot].name
	returned, answer := r.server.do(ctx, kind, name, &request{verb: e.verb, subresource: e.subresource, slot: e.slot, sent: sent})
	differences, err := r.compareAnswer(e, returned, answer)
	for _, expected := range e.events {
		if err != nil || len(differences) > 0 {
			return differences, err
		}
		differences, err = r.compareEvent(ctx, expected)
	}
	if err != nil || len(differences) > 0 {
		return differences, err
	}
	return r.compareStored(ctx, e)
}

func (r *replay) compareAnswer(e *exchange, returned footest.Object, answer error) ([]string, error) {
	if model, server := describeAnswer(e.err), describeAnswer(answer); model != server {
		return []string{fmt.Sprintf("the answer of the model is %s, and that of the server %s (%v)", model, server, answer)}, nil
	}
	if e.err != nil || e.verb == "delete" {
		return nil, nil //nolint:nilerr // the server has the same error
	}
	return r.compareObjects("the object in the answer", e.returned, returned)
}

// describeAnswer describes what a client can tell of an answer without reading its message.
func describeAnswer(err error) string {
	if err == nil {
		return "ok"
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Sprintf("no answer: %v", err)
	}
	answer := status.Status()
	var text strings.Builder
	fmt.Fprintf(&text, "%d %s", answer.Code, answer.Reason)
	if about := answer.Details; about != nil {
		fmt.Fprintf(&text, " about %s.%s %s", about.Kind, about.Group, about.Name)
		for _, cause := range about.Causes {
			fmt.Fprintf(&text, ", %s of %s", cause.Type, cause.Field)
		}
	}
	return text.String()
}

func (r *replay) compareEvent(ctx context.Context, expected event) ([]string, error) {
	got, err := r.nextEvent(ctx, r.names[expected.object.slot].resource)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("the event %s of %s", expected.verb, r.describe(expected.object.slot))
	if got == nil {
		return []string{fmt.Sprintf("the server does not send %s", what)}, nil
	}
	if got.Type != expected.verb {
		return []string{fmt.Sprintf("the server sends the event %s in place of %s", got.Type, what)}, nil
	}
	return r.compareObjects(what, expected.object.Object, metaOf(got.Object))
}

// nextEvent returns the next event of a kind, or nil if none arrives.
func (r *replay) nextEvent(ctx context.Context, resource int) (*watch.Event, error) {
	timer := time.NewTimer(eventLimit)
	defer timer.Stop()
	select {
	case e, open := <-r.watches[resource].ResultChan():
		if !open {
			return nil, fmt.Errorf("the watch of %ss has ended", r.kinds[resource])
		}
		if e.Type == watch.Error {
			return nil, fmt.Errorf("the watch of %ss: %w", r.kinds[resource], apierrors.FromObject(e.Object))
		}
		return &e, nil
	case <-timer.C:
		return nil, nil //nolint:nilnil // nothing has come
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// compareStored reads the object of a request, whether or not it was changed.
func (r *replay) compareStored(ctx context.Context, e *exchange) ([]string, error) {
	if e.verb == "get" {
		return nil, nil // that was the read
	}
	stored, err := r.server.do(ctx, r.kindOf(e.slot), r.names[e.slot].name, &request{verb: "get", slot: e.slot})
	missing := apierrors.IsNotFound(err)
	switch {
	case err != nil && !missing:
		return nil, fmt.Errorf("reading %s: %w", r.describe(e.slot), err)
	case missing && e.stored == nil:
		return nil, nil
	case missing:
		return []string{fmt.Sprintf("%s is stored in the model, and not on the server", r.describe(e.slot))}, nil
	case e.stored == nil:
		return []string{fmt.Sprintf("%s is stored on the server, and not in the model", r.describe(e.slot))}, nil
	}
	return r.compareObjects("the stored "+r.describe(e.slot), e.stored.Object, stored)
}

// compareObjects compares whole objects, but for the creation timestamp, the value of the
// deletion timestamp, managedFields, and what the server derives from owned fields: that
// must be what it derives, and the model has none of it.
func (r *replay) compareObjects(what string, expected, object footest.Object) ([]string, error) {
	translated, err := r.toModel(object, expected)
	if err != nil {
		return nil, err
	}
	expected = copyOf(expected)
	footest.KindOf(expected).Derive(expected)
	if equality.Semantic.DeepEqual(expected, translated) {
		return nil, nil
	}
	return []string{fmt.Sprintf("%s differs (-model +server):\n%s", what, diff.Diff(expected, translated))}, nil
}

// lastName is the name of an object of each kind that is created after the path: no other
// event may come before its own.
const lastName = "the-last"

func (r *replay) compareEnd(ctx context.Context) ([]string, error) {
	var differences []string
	for resource, kind := range r.kinds {
		var last runtime.Object = r.Owner.Asking(lastName, lastName, 1)
		if resource > 0 {
			last = kind.ForeignNamed(lastName)
		}
		metaOf(last).SetNamespace(r.namespace)
		if _, err := r.server.do(ctx, kind, lastName, &request{verb: "create", sent: last}); err != nil {
			return nil, fmt.Errorf("creating %s %s at the end: %w", kind, lastName, err)
		}
		e, err := r.nextEvent(ctx, resource)
		if err != nil {
			return nil, err
		}
		if e == nil {
			return nil, fmt.Errorf("no event of the creation of %s %s", kind, lastName)
		}
		if name := metaOf(e.Object).GetName(); name != lastName {
			differences = append(differences, fmt.Sprintf("the server has sent the event %s of %s %s, which the model has not", e.Type, kind, name))
		}
	}
	return differences, nil
}

// resend returns a random request with an object as it was stored at some time, or nil if
// there was none yet.
func (x explored) resend(random *rand.Rand, path []exchange) *request {
	var versions []*object
	for i := range path {
		if path[i].stored != nil {
			versions = append(versions, path[i].stored)
		}
	}
	if len(versions) == 0 {
		return nil
	}
	was := versions[random.IntN(len(versions))]
	if newest := x.store[was.slot]; newest != nil && random.IntN(2) == 0 {
		was = newest
	}
	sent := &request{verb: "update", slot: was.slot, sent: copyOf(was.Object)}
	switch random.IntN(8) {
	case 0: // as it was
	case 1:
		return x.ofStatus(sent)
	case 2:
		x.asNewest(metaOf(sent.sent))
	case 3:
		if newest := x.store[was.slot]; newest != nil {
			sent.sent = x.withSpecOfItsOwn(x.kindOf(was.slot).Updated(newest.Object, was.Object, "status"))
		}
		return x.ofStatus(sent)
	case 4:
		return &request{verb: "delete", slot: was.slot, sent: &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: new(was.GetUID()), ResourceVersion: new(was.GetResourceVersion())},
		}}
	case 5:
		return &request{verb: "delete", slot: was.slot, sent: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(was.GetUID())}}}
	case 6:
		return &request{verb: "create", slot: was.slot, sent: x.fresh(was.slot)}
	default:
		return &request{verb: "get", slot: was.slot}
	}
	if newest := x.store[was.slot]; newest != nil && x.isPending(was.slot, newest.Object) {
		return &request{verb: "get", slot: was.slot}
	}
	return sent
}

// isPending reports whether an owner has the status that the API server sets by default.
// Such an owner is only read: the default is stored with the first write, even with one that
// changes nothing, and the model does not know what is stored. No controller sends such a
// write.
func (x explored) isPending(at slot, object footest.Object) bool {
	return x.names[at].resource == 0 && footest.ConditionOf(object).Reason == "Pending"
}

// ofStatus makes an update one of the status.
func (x explored) ofStatus(sent *request) *request {
	if x.isPending(sent.slot, metaOf(sent.sent)) {
		return &request{verb: "get", slot: sent.slot}
	}
	sent.subresource = "status"
	return sent
}

// withSpecOfItsOwn changes the spec, which a write of the status must not store. The
// metadata stays: of a Deployment, the API server stores that with the status, and the model
// does not, but no controller changes it in such a write.
func (x explored) withSpecOfItsOwn(object footest.Object) footest.Object {
	if x.Owner.Is(object) {
		x.Owner.Resize(object, 7)
	} else {
		footest.KindOf(object).Drift(object, nil)
	}
	return object
}

// asNewest gives an older version of an object what the API server checks of the newest
// one. Of an earlier object of the name, it leaves the UID, which is refused, because that
// object's selector would be refused with another reason than the model has.
func (x explored) asNewest(object footest.Object) {
	at, _ := x.slotOf(object)
	newest := x.store[at]
	if newest == nil {
		return
	}
	object.SetResourceVersion(newest.GetResourceVersion())
	object.SetFinalizers(newest.GetFinalizers())
}

// fresh returns an object of a slot's name as somebody creates it.
func (x explored) fresh(at slot) footest.Object {
	if x.names[at].resource == 0 {
		return x.Owner.Asking(x.names[at].name, x.Children[0], 1)
	}
	return x.kindOf(at).ForeignNamed(x.names[at].name)
}
