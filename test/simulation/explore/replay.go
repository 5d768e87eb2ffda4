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
	"k8s.io/apimachinery/pkg/runtime"
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
	*translation

	ctx     context.Context
	server  realServer
	watches []watch.Interface // by resource
	// who takes the step under way, and what it is.
	who, step string
	// story has a line for each request, and counts how many there are by sender, verb, resource and
	// the reason of an error. events is how many were compared.
	story  []string
	counts map[string]int
	events int
	// versions are the objects as they were stored after each request.
	versions []*object
	// differences are those of the last request, and err is what ended the replay.
	differences []string
	err         error
}

// newReplay begins a replay: until it is stopped, each request that reaches the model is
// compared.
func newReplay(ctx context.Context, s *scene, server realServer, namespace string) (*replay, error) {
	r := &replay{
		scene: s, translation: newTranslation(namespace), ctx: ctx, server: server,
		who: "user", step: "the start", counts: map[string]int{},
	}
	for _, kind := range s.kinds {
		events, err := server.watch(ctx, kind)
		if err != nil {
			r.stop()
			return nil, fmt.Errorf("watching %ss: %w", kind, err)
		}
		r.watches = append(r.watches, events)
	}
	s.served = r.compare
	return r, nil
}

func (r *replay) stop() {
	r.served = nil
	for _, events := range r.watches {
		events.Stop()
	}
}

// hasEnded reports whether there is nothing more to compare.
func (r *replay) hasEnded() bool { return r.err != nil || len(r.differences) > 0 }

// compare sends a request that the model has answered, and notes how the server differs in the answer,
// the events, and what is stored.
func (r *replay) compare(x explored, sent *request, before int64, returned footest.Object, answer error) {
	if r.hasEnded() {
		return
	}
	r.story = append(r.story, fmt.Sprintf("%3d. %s: %s -> %s", len(r.story)+1, r.step, sent, describeAnswer(answer)))
	what := fmt.Sprintf("%s: %s %s", r.who, sent.Action(), sent.Kind.Resource.Resource)
	r.counts[what]++
	if answer != nil {
		r.counts[what+": "+string(apierrors.ReasonForError(answer))]++
	}
	if stored := x.store[sent.slot]; stored != nil {
		r.versions = append(r.versions, stored)
	}
	r.compareAnswer(sent, returned, answer)
	for _, e := range x.events[x.names[sent.slot].resource] {
		if e.version > before && !r.hasEnded() {
			r.compareEvent(e)
		}
	}
	if sent.Verb != "get" && !r.hasEnded() {
		r.compareStored(sent, x.stored(sent.slot))
	}
}

func (r *replay) differs(format string, args ...any) {
	r.differences = append(r.differences, fmt.Sprintf(format, args...))
}

func (r *replay) compareAnswer(sent *request, returned footest.Object, answer error) {
	var translated model.Request
	if translated, r.err = r.translation.request(sent.Request); r.err != nil {
		return
	}
	object, err := r.server.do(r.ctx, translated)
	if model, server := describeAnswer(answer), describeAnswer(err); model != server {
		r.differs("the answer of the model is %s, and that of the server %s (%v)", model, server, err)
	} else if err == nil && sent.Verb != "delete" {
		r.compareObjects("the object in the answer", returned, object)
	}
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

func (r *replay) compareEvent(expected event) {
	r.events++
	got := r.nextEvent(r.names[expected.object.slot].resource)
	what := fmt.Sprintf("the event %s of %s", expected.verb, r.describe(expected.object.slot))
	switch {
	case r.err != nil:
	case got == nil:
		r.differs("the server does not send %s", what)
	case got.Type != expected.verb:
		r.differs("the server sends the event %s in place of %s", got.Type, what)
	default:
		r.compareObjects(what, expected.object.Object, metaOf(got.Object))
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

// compareStored reads the object of a request, whether or not it was changed.
func (r *replay) compareStored(sent *request, expected footest.Object) {
	stored, err := r.server.do(r.ctx, model.Request{Verb: "get", Kind: sent.Kind, Name: sent.Name})
	missing := apierrors.IsNotFound(err)
	switch {
	case err != nil && !missing:
		r.err = fmt.Errorf("reading %s: %w", r.describe(sent.slot), err)
	case missing && expected != nil:
		r.differs("%s is stored in the model, and not on the server", r.describe(sent.slot))
	case !missing && expected == nil:
		r.differs("%s is stored on the server, and not in the model", r.describe(sent.slot))
	case expected != nil:
		r.compareObjects("the stored "+r.describe(sent.slot), expected, stored)
	}
}

// compareObjects compares whole objects, but for the creation timestamp, the value of the
// deletion timestamp, managedFields, and what the server derives from owned fields: that
// must be what it derives, and the model has none of it.
func (r *replay) compareObjects(what string, expected, object footest.Object) {
	translated, err := r.object(object, expected)
	if err != nil {
		r.err = err
		return
	}
	expected = copyOf(expected)
	footest.KindOf(expected).Derive(expected)
	if !equality.Semantic.DeepEqual(expected, translated) {
		r.differs("%s differs (-model +server):\n%s", what, diff.Diff(expected, translated))
	}
}

// lastName is the name of an object of each kind that is created after the path: no other
// event may come before its own.
const lastName = "the-last"

func (r *replay) compareEnd() {
	for resource, kind := range r.kinds {
		var last runtime.Object = r.Owner.Asking(lastName, lastName, 1)
		if resource > 0 {
			last = kind.ForeignNamed(lastName)
		}
		metaOf(last).SetNamespace(r.namespace)
		if _, err := r.server.do(r.ctx, model.Request{Verb: "create", Kind: kind, Name: lastName, Sent: last}); err != nil {
			r.err = fmt.Errorf("creating %s %s at the end: %w", kind, lastName, err)
		}
		if r.hasEnded() {
			return
		}
		switch e := r.nextEvent(resource); {
		case r.err != nil:
		case e == nil:
			r.err = fmt.Errorf("no event of the creation of %s %s", kind, lastName)
		case metaOf(e.Object).GetName() != lastName:
			r.differs("the server has sent the event %s of %s %s, which the model has not", e.Type, kind, metaOf(e.Object).GetName())
		}
	}
}
