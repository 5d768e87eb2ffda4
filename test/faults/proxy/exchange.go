// SPDX-License-Identifier: Apache-2.0

// Exchanges: a request under way, and the ways to forward and answer it.

package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Exchange is a request under way, for a Fault to handle. Its methods may be called from
// the goroutine of the Fault only.
type Exchange struct {
	Call *Call

	proxy   *Proxy
	writer  http.ResponseWriter
	request *http.Request
	body    []byte

	answer *answer
}

type answer struct {
	code   int
	header http.Header
	body   []byte
}

func (p *Proxy) newExchange(call *Call, w http.ResponseWriter, r *http.Request) (*Exchange, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if call.IsWrite() {
		call.Body = body
	}
	return &Exchange{Call: call, proxy: p, writer: w, request: r, body: body}, nil
}

// outgoing returns the request to send to the API server.
func (x *Exchange) outgoing(ctx context.Context) *http.Request {
	out := x.request.Clone(ctx)
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host, out.Host = x.proxy.target.Scheme, x.proxy.target.Host, ""
	out.URL.Path = x.proxy.confined(out.URL.Path)
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(x.body)), int64(len(x.body))
	out.Header.Del("Connection")
	out.Header.Del("Authorization")
	out.Header.Del("Accept-Encoding")
	out.Header.Set("Accept", "application/json")
	return out
}

// confined turns the path for all namespaces into the path for the proxy's namespace, if
// it has one.
func (p *Proxy) confined(path string) string {
	if p.namespace == "" {
		return path
	}
	for _, resource := range []string{"/deployments", "/foos"} {
		if prefix, ok := strings.CutSuffix(path, resource); ok && !strings.Contains(prefix, "/namespaces/") {
			return prefix + "/namespaces/" + p.namespace + resource
		}
	}
	return path
}

// Forward sends the request to the API server and keeps the answer. It continues if the
// client disconnects.
func (x *Exchange) Forward() {
	response, err := x.proxy.transport.RoundTrip(x.outgoing(x.proxy.life))
	if err != nil {
		x.annotate("not answered: " + err.Error())
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		x.annotate("not answered in full: " + err.Error())
		return
	}
	x.storeAnswer(&answer{response.StatusCode, response.Header, body})
}

// storeAnswer keeps an answer, and records its code and resourceVersion.
func (x *Exchange) storeAnswer(a *answer) {
	x.answer = a
	version := ""
	if x.Call.IsWrite() {
		version = versionOf(a.body)
	}
	x.proxy.note(func() {
		x.Call.Code, x.Call.Version = a.code, version
		x.Call.Unchanged = version != "" && x.Call.Method == http.MethodPut && version == versionOf(x.body)
		if x.Call.IsWrite() {
			x.Call.Answer = a.body
		}
	})
}

// versionOf returns the resourceVersion of an object in JSON, or "".
func versionOf(body []byte) string {
	var object metav1.PartialObjectMetadata
	if json.Unmarshal(body, &object) != nil {
		return ""
	}
	return object.ResourceVersion
}

// Reply sends the API server's answer to the client, or closes the connection if there is
// none.
func (x *Exchange) Reply() {
	if x.answer == nil {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(x.writer.Header(), x.answer.header)
	x.writer.Header().Del("Content-Length")
	x.writer.WriteHeader(x.answer.code)
	_, _ = x.writer.Write(x.answer.body)
}

// Cut closes the connection without an answer.
func (x *Exchange) Cut() {
	panic(http.ErrAbortHandler)
}

// Gone is closed when the client disconnects.
func (x *Exchange) Gone() <-chan struct{} { return x.request.Context().Done() }

// Later forwards the request when begin is closed, even if the client has disconnected.
func (x *Exchange) Later(begin <-chan struct{}) {
	x.proxy.late.Go(func() {
		select {
		case <-begin:
			x.Forward()
		case <-x.proxy.life.Done():
		}
	})
}

// Answer answers in place of the API server. A retryAfter of 0 seconds is left out.
func (x *Exchange) Answer(code int, reason metav1.StatusReason, message string, retryAfter int) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
	if retryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter)}
	}
	body, err := json.Marshal(status)
	if err != nil {
		panic(fmt.Sprintf("encoding a Status: %v", err))
	}
	x.answerWith(code, "application/json", body, retryAfter)
}

// AnswerText answers in place of the API server with plain text, as the API server does
// before it has decoded a request.
func (x *Exchange) AnswerText(code int, text string, retryAfter int) {
	x.answerWith(code, "text/plain; charset=utf-8", []byte(text+"\n"), retryAfter)
}

func (x *Exchange) answerWith(code int, contentType string, body []byte, retryAfter int) {
	x.annotate(fmt.Sprintf("answered %d in place of the API server", code))
	x.proxy.note(func() { x.Call.Code = code })
	if retryAfter > 0 {
		x.writer.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	x.writer.Header().Set("Content-Type", contentType)
	x.writer.WriteHeader(code)
	_, _ = x.writer.Write(body)
}

// annotate appends to the description of the call's fault.
func (x *Exchange) annotate(what string) {
	x.proxy.note(func() {
		if x.Call.Fault != "" {
			what = x.Call.Fault + "; " + what
		}
		x.Call.Fault = what
	})
}

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
