// SPDX-License-Identifier: Apache-2.0

// Exchanges: a request under way, and the ways to forward and answer it. Watches: what applies
// to their events, and how they end.

package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Exchange is a request under way, for a Fault to handle.
type Exchange struct {
	Call *Call

	proxy   *Proxy
	writer  http.ResponseWriter
	request *http.Request
	// response is the API server's answer, with the body that has been read. It is nil
	// without an answer.
	response *http.Response
	answered []byte
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
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(x.Call.Body)), int64(len(x.Call.Body))
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
			x.Call.Unchanged = x.Call.Method == http.MethodPut && versionOf(body) == versionOf(x.Call.Body)
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
	// Raw is the event as the API server sent it.
	Raw []byte
}

func newEvent(resource string, raw []byte) Event {
	var read struct {
		Type   string
		Object struct{ Metadata struct{ Name string } }
	}
	// An event that can't be parsed is forwarded unchanged.
	_ = json.Unmarshal(raw, &read)
	return Event{Resource: resource, Type: read.Type, Name: read.Object.Metadata.Name, Raw: raw}
}

// Times returns the event a number of times, for an edit.
func (e Event) Times(number int) [][]byte { return slices.Repeat([][]byte{e.Raw}, number) }

// EditEvents sets a function that returns what is sent in place of each event. It may wait
// before. Nil removes it.
func (p *Proxy) EditEvents(edit func(context.Context, Event) (sent [][]byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edit = edit
}

// HoldEvents holds back the events of a resource's watches, including new ones, until
// release is called.
func (p *Proxy) HoldEvents(resource string) (release func()) {
	released := make(chan struct{})
	p.EditEvents(func(ctx context.Context, event Event) [][]byte {
		if event.Resource == resource {
			select {
			case <-released:
			case <-ctx.Done():
			}
		}
		return event.Times(1)
	})
	return sync.OnceFunc(func() {
		close(released)
		p.EditEvents(nil)
	})
}

// EndWatches ends the open watches of a resource, as an API server does after a while. An
// empty resource means all.
func (p *Proxy) EndWatches(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x, end := range p.watches {
		if resource == "" || x.Call.Resource == resource {
			end()
		}
	}
}

// stream forwards a watch, event by event.
func (x *Exchange) stream() {
	ctx, end := context.WithCancel(x.request.Context())
	defer end()
	x.proxy.note(func() { x.proxy.watches[x] = end })
	defer x.proxy.note(func() { delete(x.proxy.watches, x) })
	response, err := x.send(ctx)
	if err != nil {
		x.cut()
	}
	defer response.Body.Close()
	x.proxy.note(func() { x.Call.Code = response.StatusCode })
	x.begin(response)
	x.flush()
	events := json.NewDecoder(response.Body)
	for {
		var raw json.RawMessage
		if events.Decode(&raw) != nil {
			return
		}
		for _, sent := range x.edited(ctx, newEvent(x.Call.Resource, raw)) {
			if ctx.Err() != nil {
				return
			}
			_, _ = x.writer.Write(append(slices.Clip(sent), '\n'))
			x.flush()
		}
	}
}

// edited returns what is sent in place of an event.
func (x *Exchange) edited(ctx context.Context, event Event) [][]byte {
	x.proxy.mu.Lock()
	edit := x.proxy.edit
	x.proxy.mu.Unlock()
	if edit == nil {
		return event.Times(1)
	}
	return edit(ctx, event)
}

func (x *Exchange) flush() { _ = http.NewResponseController(x.writer).Flush() }
