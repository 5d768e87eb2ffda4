// SPDX-License-Identifier: Apache-2.0

// The replay of a path on a real API server, and the comparison.

package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/model"
)

// realServer is the API server that the model is compared with, in the namespace of a path.
type realServer interface {
	// do sends a request. The object of the answer is nil for a delete.
	do(ctx context.Context, sent model.Request) (footest.Object, error)
	// watch returns the events of a kind, from the beginning of the namespace.
	watch(ctx context.Context, kind *footest.Kind) (watch.Interface, error)
}

// eventLimit is how long an event may take to arrive.
const eventLimit = 30 * time.Second

// replay sends the requests of a path to a server, as they reach the model, and compares what both
// do. It ends at the first difference.
type replay struct {
	*scene

	ctx     context.Context
	server  realServer
	watches []watch.Interface // by resource
	// step is the one under way, and answer the error in the server's answer to the newest request.
	step   string
	answer error
	// story has a line for each request. refused is how many were answered with an error, and events
	// how many events were compared.
	story           []string
	refused, events int
	// versions are the objects as they were stored after each request.
	versions []*object
	// err is the difference that ended the replay, or another error.
	err error
}

// newReplay begins a replay: until it is stopped, each request that reaches the model is
// compared.
func newReplay(ctx context.Context, s *scene, server realServer) (*replay, error) {
	r := &replay{scene: s, ctx: ctx, server: server, step: "the start"}
	for _, kind := range s.kinds {
		events, err := server.watch(ctx, kind)
		if err != nil {
			r.stop()
			return nil, fmt.Errorf("watching %ss: %w", kind, err)
		}
		r.watches = append(r.watches, events)
	}
	s.real = r
	return r, nil
}

func (r *replay) stop() {
	r.real = nil
	for _, events := range r.watches {
		events.Stop()
	}
}

// serve answers a request as the model does, and notes how the server differs in the answer, the events,
// and what is stored.
func (r *replay) serve(x explored, sent *request) (footest.Object, error) {
	if r.err != nil {
		return x.process(sent)
	}
	returned, err := r.compareAnswer(x, sent)
	r.story = append(r.story, fmt.Sprintf("%3d. %s: %s -> %s", len(r.story)+1, r.step, sent, describeAnswer(err)))
	if err != nil {
		r.refused++
	}
	if stored := x.store[sent.slot]; stored != nil {
		r.versions = append(r.versions, stored)
	}
	if sent.Verb != "get" && r.err == nil {
		_, _ = r.compareAnswer(x, x.request(sent.slot, "get", "", nil))
	}
	return returned, err
}

func (r *replay) compareAnswer(x explored, sent *request) (footest.Object, error) {
	object, answer := r.server.do(r.ctx, sent.Request)
	r.answer = answer
	returned, err := x.process(sent)
	if r.err != nil {
		return returned, err
	}
	if model, server := describeAnswer(err), describeAnswer(answer); model != server {
		r.err = fmt.Errorf("to %s the answer of the model is %s, and that of the server %s (%s)", sent, model, server, fmt.Sprint(answer))
	} else if err == nil && sent.Verb != "delete" {
		r.compareObjects("the object in the answer to "+sent.String(), returned, object)
	}
	return returned, err
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

// adopt compares the event of a change, and gives the model the UID and the version that the server chose.
// Of another answer there is no event to wait for.
func (r *replay) adopt(x explored, at slot, change footest.Change) {
	if r.err != nil || r.answer != nil {
		return
	}
	r.events++
	got := r.nextEvent(r.names[at].resource)
	what := fmt.Sprintf("the event %s of %s", change.Event, r.describe(at))
	switch {
	case r.err != nil:
	case got == nil:
		r.err = fmt.Errorf("the server does not send %s", what)
	case got.Type != change.Event:
		r.err = fmt.Errorf("the server sends the event %s in place of %s", got.Type, what)
	default:
		object := metaOf(got.Object)
		version, ok := parseVersion(object.GetResourceVersion())
		if !ok || version < x.version {
			r.err = fmt.Errorf("%s has the version %q, which is not newer than all before", what, object.GetResourceVersion())
			return
		}
		x.version = version
		change.Object.SetResourceVersion(object.GetResourceVersion())
		if change.Event == watch.Added {
			change.Object.SetUID(object.GetUID())
		}
		r.compareObjects(what, change.Object, object)
	}
}

// nextEvent returns the next event of a kind, or nil if none arrives.
func (r *replay) nextEvent(resource int) *watch.Event {
	timer := time.NewTimer(eventLimit)
	defer timer.Stop()
	select {
	case e, open := <-r.watches[resource].ResultChan():
		switch {
		case !open:
			r.err = fmt.Errorf("the watch of %ss has ended", r.kinds[resource])
		case e.Type == watch.Error:
			r.err = fmt.Errorf("the watch of %ss: %w", r.kinds[resource], apierrors.FromObject(e.Object))
		}
		return &e
	case <-timer.C:
	case <-r.ctx.Done():
		r.err = context.Cause(r.ctx)
	}
	return nil
}

// compareObjects compares whole objects, but for the creation timestamp, the value of the
// deletion timestamp, managedFields, and what the server derives from owned fields: that
// must be what it derives, and the model has none of it.
func (r *replay) compareObjects(what string, expected, object footest.Object) {
	expected = copyOf(expected)
	footest.KindOf(expected).Derive(expected)
	if !equality.Semantic.DeepEqual(expected, object) {
		r.err = fmt.Errorf("%s differs (-model +server):\n%s", what, diff.Diff(expected, object))
	}
}

// lastName is the name of an object of each kind that is created after the path: no other
// event may come before its own.
const lastName = "the-last"

func (r *replay) compareEnd() {
	for resource, kind := range r.kinds {
		last := r.example(resource, lastName)
		if _, err := r.server.do(r.ctx, model.Request{Verb: "create", Kind: kind, Name: lastName, Sent: last}); err != nil {
			r.err = fmt.Errorf("creating %s %s at the end: %w", kind, lastName, err)
		}
		if r.err != nil {
			return
		}
		switch e := r.nextEvent(resource); {
		case r.err != nil:
		case e == nil:
			r.err = fmt.Errorf("no event of the creation of %s %s", kind, lastName)
		case metaOf(e.Object).GetName() != lastName:
			r.err = fmt.Errorf("the server has sent the event %s of %s %s, which the model has not", e.Type, kind, metaOf(e.Object).GetName())
		}
	}
}
