// SPDX-License-Identifier: Apache-2.0

// Exchanges: a request under way, and the ways to forward and answer it. Watches: what applies
// to their events, and how they end.

package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Exchange is a request under way, for a Fault to handle.
type Exchange struct {
	Call *Call

	proxy   *Proxy
	writer  http.ResponseWriter
	request *http.Request
	body    []byte
	// response is the API server's answer, with the body that has been read. It is nil
	// without an answer.
	response *http.Response
	answered []byte
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

// send sends the request to the API server. A proxy that is confined to a namespace
// replaces the path for all namespaces.
func (x *Exchange) send(ctx context.Context) (*http.Response, error) {
	out := x.request.Clone(ctx)
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host, out.Host = x.proxy.target.Scheme, x.proxy.target.Host, ""
	if call := x.Call; x.proxy.namespace != "" && call.Namespace == "" && isFooOrDeployment(call.Resource) {
		out.URL.Path = path.Join("/apis", call.APIGroup, call.APIVersion, "namespaces", x.proxy.namespace, call.Resource)
	}
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(x.body)), int64(len(x.body))
	out.Header.Del("Connection")
	out.Header.Del("Authorization")
	out.Header.Del("Accept-Encoding")
	out.Header.Set("Accept", "application/json")
	response, err := x.proxy.transport.RoundTrip(out)
	if err != nil {
		x.annotate("not answered: " + err.Error())
	}
	return response, err
}

// forward sends the request to the API server, and keeps and records the answer. It
// continues if the client disconnects.
func (x *Exchange) forward() {
	response, err := x.send(x.proxy.life)
	if err != nil {
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		x.annotate("not answered in full: " + err.Error())
		return
	}
	x.response, x.answered = response, body
	x.proxy.note(func() {
		x.Call.Code = response.StatusCode
		if x.Call.IsWrite() {
			x.Call.Answer = body
			x.Call.Unchanged = x.Call.Method == http.MethodPut && versionOf(body) == versionOf(x.body)
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

// reply sends the API server's answer to the client, or closes the connection if there is
// none.
func (x *Exchange) reply() {
	if x.response == nil {
		x.cut()
	}
	x.begin(x.response)
	_, _ = x.writer.Write(x.answered)
}

// begin sends the header of the API server's answer to the client.
func (x *Exchange) begin(response *http.Response) {
	maps.Copy(x.writer.Header(), response.Header)
	x.writer.Header().Del("Content-Length")
	x.writer.WriteHeader(response.StatusCode)
}

// cut closes the connection without an answer.
func (x *Exchange) cut() { panic(http.ErrAbortHandler) }

// answer answers with a Status in place of the API server. A retryAfter of 0 seconds is left
// out.
func (x *Exchange) answer(code int, reason metav1.StatusReason, message string, retryAfter int) {
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

func newEvent(resource string, raw []byte) Event {
	var read struct {
		Type   string
		Object struct{ Metadata struct{ Name string } }
	}
	// An event that can't be parsed is forwarded unchanged.
	_ = json.Unmarshal(raw, &read)
	return Event{Resource: resource, Type: read.Type, Name: read.Object.Metadata.Name, raw: raw}
}

// watches holds the open watches and the faults that apply to their events.
type watches struct {
	mu   sync.Mutex
	open map[*Exchange]context.CancelFunc
	// edit returns how often each event is sent, and may wait before.
	edit func(context.Context, Event) (times int)
	// seen holds the events of each resource's latest watch, as they came.
	seen map[string][][]byte
	// replays are sent to the next watch of a resource in place of live events.
	replays map[string]*replay
}

type replay struct {
	events [][]byte
	until  <-chan struct{}
}

func newWatches() *watches {
	return &watches{
		open: map[*Exchange]context.CancelFunc{}, seen: map[string][][]byte{}, replays: map[string]*replay{},
	}
}

// HoldEvents holds back the events of a resource's watches, including new ones, until
// release is called.
func (p *Proxy) HoldEvents(resource string) (release func()) {
	released := make(chan struct{})
	p.EditEvents(func(ctx context.Context, event Event) int {
		if event.Resource == resource {
			select {
			case <-released:
			case <-ctx.Done():
				return 0
			}
		}
		return 1
	})
	return sync.OnceFunc(func() {
		close(released)
		p.EditEvents(nil)
	})
}

// EndWatches ends the open watches of a resource, as an API server does after a while. An
// empty resource means all.
func (p *Proxy) EndWatches(resource string) {
	p.watches.mu.Lock()
	defer p.watches.mu.Unlock()
	for x, end := range p.watches.open {
		if resource == "" || x.Call.Resource == resource {
			end()
		}
	}
}

// EditEvents sets a function that returns how often each event is sent, 0 to drop it. It may
// wait before. Nil removes it.
func (p *Proxy) EditEvents(edit func(context.Context, Event) (times int)) {
	p.watches.mu.Lock()
	defer p.watches.mu.Unlock()
	p.watches.edit = edit
}

// ReplayTo makes the next watch of a resource behave like one of a stale API server: the
// client gets the events that the latest watch got until now, then nothing until the
// channel is closed, when the watch ends.
func (p *Proxy) ReplayTo(resource string, until <-chan struct{}) {
	w := p.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replays[resource] = &replay{slices.Clone(w.seen[resource]), until}
}

// add registers a watch, and returns the replay for its resource, or nil.
func (w *watches) add(x *Exchange, end context.CancelFunc) *replay {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[x] = end
	resource := x.Call.Resource
	again := w.replays[resource]
	delete(w.replays, resource)
	if again == nil {
		w.seen[resource] = nil
	}
	return again
}

func (w *watches) remove(x *Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[x]()
	delete(w.open, x)
}

// times returns how often to send an event. It may wait.
func (w *watches) times(ctx context.Context, event Event) int {
	w.mu.Lock()
	edit := w.edit
	w.mu.Unlock()
	times := 1
	if edit != nil {
		times = edit(ctx, event)
	}
	if ctx.Err() != nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[event.Resource] = append(w.seen[event.Resource], event.raw)
	return times
}

// stream forwards a watch, event by event.
func (x *Exchange) stream() {
	ctx, end := context.WithCancel(x.request.Context())
	again := x.proxy.watches.add(x, end)
	defer x.proxy.watches.remove(x)
	if again != nil {
		x.replay(ctx, again)
		return
	}
	response, err := x.send(ctx)
	if err != nil {
		x.cut()
	}
	defer response.Body.Close()
	x.proxy.note(func() { x.Call.Code = response.StatusCode })
	x.begin(response)
	x.flush()
	events := json.NewDecoder(response.Body)
	for ctx.Err() == nil {
		var raw json.RawMessage
		if events.Decode(&raw) != nil {
			return
		}
		for range x.proxy.watches.times(ctx, newEvent(x.Call.Resource, raw)) {
			x.write(raw)
		}
	}
}

func (x *Exchange) replay(ctx context.Context, again *replay) {
	x.annotate("replayed by a stale API server")
	x.proxy.note(func() { x.Call.Code = http.StatusOK })
	x.writer.Header().Set("Content-Type", "application/json")
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

func (x *Exchange) flush() { _ = http.NewResponseController(x.writer).Flush() }
