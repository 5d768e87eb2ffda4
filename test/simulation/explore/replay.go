// SPDX-License-Identifier: Apache-2.0

// Random walks through a world, with requests in between that are sent again; the replay of a path
// on a real API server, and the comparison.

package explore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/pkg/reconcile/reconciletest/model"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
)

// realServer is the API server that the model is compared with, in the namespace of a path.
type realServer interface {
	// do sends a request. The object of the answer is nil for a delete.
	do(ctx context.Context, sent model.Request) (rows.Object, error)
	// watch returns the events of a kind, from the beginning of the namespace.
	watch(ctx context.Context, kind *rows.Kind) (watch.Interface, error)
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
	// step is the one in progress, and answer the error in the server's answer to the newest request.
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
func (r *replay) serve(x explored, sent *request) (rows.Object, error) {
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
		_, _ = r.compareAnswer(x, x.request(sent.slot, "get", nil))
	}
	return returned, err
}

func (r *replay) compareAnswer(x explored, sent *request) (rows.Object, error) {
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
func (r *replay) adopt(x explored, at slot, change rows.Change) {
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
func (r *replay) compareObjects(what string, expected, object rows.Object) {
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

// walk takes random steps from the beginning of the world, at most as many as it may, and
// replays the requests that reach the API server.
func (r *runner) walk(random *rand.Rand, steps int, p *replay) error {
	current, err := r.begin()
	if err != nil {
		return err
	}
	for taken := 0; taken < steps && p.err == nil; taken++ {
		x := explored{current.clone(), r.scene}
		if sent := x.resend(random, p.versions); sent != nil && random.IntN(oneResent) == 0 {
			p.step = "somebody else"
			_, _ = x.serve(sent)
			x.trim()
			current = x.state
			continue
		}
		next, ok := x.choose(random)
		if !ok {
			break
		}
		p.step = x.describeStep(next)
		current = r.take(current, next)
	}
	return nil
}

// oneResent is how many steps there are for one request of resend.
const oneResent = 12

// startsAtMost is how many starts a step can tell apart.
const startsAtMost = 1 << 8

// choose returns a random step: first what kind of step, so that the many outcomes of a
// call don't crowd out the rest. Users and faults are rare, so that the controller comes to
// something between them.
func (x explored) choose(random *rand.Rand) (chosen step, ok bool) {
	bySystem, others := map[op][]step{}, map[op][]step{}
	for _, s := range x.steps() {
		switch {
		case s.op == opStart:
			// At once, before further events make more starts than a step can tell apart.
			return s, true
		case s.op == opCrash && len(x.starts()) >= startsAtMost:
		case s.bySystem():
			bySystem[s.op] = append(bySystem[s.op], s)
		default:
			others[s.op] = append(others[s.op], s)
		}
	}
	from := bySystem
	if len(bySystem) == 0 || len(others) > 0 && random.IntN(6) == 0 {
		from = others
	}
	if len(from) == 0 {
		return step{}, false
	}
	kinds := slices.Sorted(maps.Keys(from))
	among := from[kinds[random.IntN(len(kinds))]]
	return among[random.IntN(len(among))], true
}

// resend returns a random request with an object as it was stored at some time, or nil if
// there was none yet.
func (x explored) resend(random *rand.Rand, versions []*object) *request {
	if len(versions) == 0 {
		return nil
	}
	was := versions[random.IntN(len(versions))]
	if newest := x.store[was.slot]; newest != nil && random.IntN(2) == 0 {
		was = newest
	}
	sent := x.request(was.slot, "update", copyOf(was.Object))
	switch random.IntN(8) {
	case 0: // as it was
	case 1:
		return x.ofStatus(sent)
	case 2:
		x.asNewest(sent.Object())
	case 3:
		if newest := x.store[was.slot]; newest != nil {
			sent.Sent = x.withSpecOfItsOwn(x.kindOf(was.slot).Updated(newest.Object, was.Object, "status"))
		}
		return x.ofStatus(sent)
	case 4:
		return x.request(was.slot, "delete", &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: new(was.GetUID()), ResourceVersion: new(was.GetResourceVersion())},
		})
	case 5:
		return x.request(was.slot, "delete", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(was.GetUID())}})
	case 6:
		return x.request(was.slot, "create", x.example(x.names[was.slot].resource, x.names[was.slot].name))
	default:
		return x.request(was.slot, "get", nil)
	}
	if newest := x.store[was.slot]; newest != nil && x.isPending(was.slot, newest.Object) {
		return x.request(was.slot, "get", nil)
	}
	return sent
}

// isPending reports whether an owner has the status that the API server sets by default.
// Such an owner is only read: the default is stored with the first write, even with one that
// changes nothing, and the model does not know what is stored. No controller sends such a
// write.
func (x explored) isPending(at slot, object rows.Object) bool {
	return x.names[at].resource == 0 && rows.ConditionOf(object).Reason == "Pending"
}

// ofStatus makes an update one of the status.
func (x explored) ofStatus(sent *request) *request {
	if x.isPending(sent.slot, sent.Object()) {
		return x.request(sent.slot, "get", nil)
	}
	sent.Subresource = "status"
	return sent
}

// withSpecOfItsOwn changes the spec, which a write of the status must not store. The
// metadata stays: of a Deployment, the API server stores that with the status, and the model
// does not, but no controller changes it in such a write.
func (x explored) withSpecOfItsOwn(object rows.Object) rows.Object {
	if x.Owner.Is(object) {
		x.Owner.Resize(object, 7)
	} else {
		x.Owner.KindOf(object).Drift(object, nil)
	}
	return object
}

// asNewest gives an older version of an object what the API server checks of the newest
// one. Of an earlier object of the name, it leaves the UID, which is refused, because that
// object's selector would be refused with another reason than the model has.
func (x explored) asNewest(object rows.Object) {
	at, _ := x.slotOf(object)
	newest := x.store[at]
	if newest == nil {
		return
	}
	object.SetResourceVersion(newest.GetResourceVersion())
	object.SetFinalizers(newest.GetFinalizers())
}
