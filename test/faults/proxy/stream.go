// SPDX-License-Identifier: Apache-2.0

// Watches: their events are forwarded one by one, held, edited or replayed.

package proxy

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// Event is one event of a watch.
type Event struct {
	Resource string
	Type     string
	Name     string
	raw      []byte
}

// streams holds the open watches and the faults that apply to their events.
type streams struct {
	mu   sync.Mutex
	open map[*stream]bool
	// held maps a resource to a channel. Its events wait until the channel is closed.
	held map[string]chan struct{}
	edit func(Event) (times int)
	// seen holds the events of each resource's latest watch, as they came.
	seen map[string][][]byte
	// replays are sent to the next watch of a resource in place of live events.
	replays map[string]replay
}

type replay struct {
	events [][]byte
	until  <-chan struct{}
}

type stream struct {
	resource string
	end      context.CancelFunc
}

func newStreams() *streams {
	return &streams{open: map[*stream]bool{}, held: map[string]chan struct{}{}, seen: map[string][][]byte{}, replays: map[string]replay{}}
}

// HoldEvents holds back the events of a resource's watches, including new ones, until
// release is called.
func (p *Proxy) HoldEvents(resource string) (release func()) {
	s := p.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[resource] == nil {
		s.held[resource] = make(chan struct{})
	}
	channel := s.held[resource]
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.held, resource)
		close(channel)
	})
}

// EndWatches ends the open watches of a resource, as an API server does after a while. An
// empty resource means all.
func (p *Proxy) EndWatches(resource string) { p.streams.endAll(resource) }

// EditEvents sets a function that returns how often each event is sent, 0 to drop it. Nil
// removes it.
func (p *Proxy) EditEvents(edit func(Event) (times int)) {
	p.streams.mu.Lock()
	defer p.streams.mu.Unlock()
	p.streams.edit = edit
}

// ReplayTo makes the next watch of a resource behave like one of a stale API server: the
// client gets the events that the latest watch got until now, then nothing until the
// channel is closed, when the watch ends.
func (p *Proxy) ReplayTo(resource string, until <-chan struct{}) {
	s := p.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replays[resource] = replay{events: append([][]byte(nil), s.seen[resource]...), until: until}
}

func (s *streams) endAll(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.open {
		if resource == "" || one.resource == resource {
			one.end()
		}
	}
}

// add registers a watch, and returns the replay for its resource, if there is one.
func (s *streams) add(one *stream) (replay, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[one] = true
	again, ok := s.replays[one.resource]
	delete(s.replays, one.resource)
	if !ok {
		s.seen[one.resource] = nil
	}
	return again, ok
}

func (s *streams) remove(one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, one)
	one.end()
}

// times waits while the event's resource is held, and returns how often to send the
// event.
func (s *streams) times(ctx context.Context, event Event) int {
	s.mu.Lock()
	channel := s.held[event.Resource]
	s.mu.Unlock()
	if channel != nil {
		select {
		case <-channel:
		case <-ctx.Done():
			return 0
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[event.Resource] = append(s.seen[event.Resource], event.raw)
	if s.edit != nil {
		return s.edit(event)
	}
	return 1
}

// stream forwards a watch, event by event.
func (x *Exchange) stream() {
	ctx, end := context.WithCancel(x.request.Context())
	one := &stream{resource: x.Call.Resource, end: end}
	again, behind := x.proxy.streams.add(one)
	defer x.proxy.streams.remove(one)
	if behind {
		x.annotate("replayed by a stale API server")
		x.send(ctx, again)
		return
	}
	response, err := x.proxy.transport.RoundTrip(x.outgoing(ctx))
	if err != nil {
		x.annotate("not answered: " + err.Error())
		x.Cut()
	}
	defer response.Body.Close()
	x.proxy.note(func() { x.Call.Code = response.StatusCode })
	maps.Copy(x.writer.Header(), response.Header)
	x.writer.Header().Del("Content-Length")
	x.writer.WriteHeader(response.StatusCode)
	x.flush()
	events := json.NewDecoder(response.Body)
	for ctx.Err() == nil {
		var raw json.RawMessage
		if events.Decode(&raw) != nil {
			return
		}
		for range x.proxy.streams.times(ctx, newEvent(x.Call.Resource, raw)) {
			x.write(raw)
		}
	}
}

// send sends a replay to the client.
func (x *Exchange) send(ctx context.Context, again replay) {
	x.proxy.note(func() { x.Call.Code = http.StatusOK })
	x.writer.Header().Set("Content-Type", "application/json")
	x.writer.WriteHeader(http.StatusOK)
	for _, raw := range again.events {
		x.write(raw)
	}
	x.flush()
	select {
	case <-again.until:
	case <-ctx.Done():
	}
}

func (x *Exchange) write(raw []byte) {
	_, _ = x.writer.Write(append(slices.Clip(raw), '\n'))
	x.flush()
}

func (x *Exchange) flush() {
	_ = http.NewResponseController(x.writer).Flush()
}

func newEvent(resource string, raw []byte) Event {
	var read struct {
		Type   string
		Object struct {
			Metadata struct{ Name string }
		}
	}
	// An event that can't be parsed is forwarded unchanged.
	_ = json.Unmarshal(raw, &read)
	return Event{Resource: resource, Type: read.Type, Name: read.Object.Metadata.Name, raw: raw}
}
