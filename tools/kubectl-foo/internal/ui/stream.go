// SPDX-License-Identifier: Apache-2.0

// The stream of server-sent events.

package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// maxStreams is how many pages may be open.
	maxStreams = 32
	// sendPeriod is the shortest time between two sends.
	sendPeriod = 200 * time.Millisecond
	// writeTimeout is the usual limit of an answer, or an event.
	writeTimeout = 20 * time.Second
)

// stream sends the list, and what there is to say about the Foo of the request, whenever
// they change.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	if s.streams.Add(1) > maxStreams {
		s.streams.Add(-1)
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer s.streams.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	ctx, out, selected := r.Context(), &sender{w: w, sent: map[string][]byte{}}, nameOf(r)
	for {
		changed := s.live.changes.wait() // before reading, to miss nothing
		out.extend(s.writeTimeout)
		out.send("list", s.live.list())
		if selected.Name != "" {
			out.send("detail", s.live.detail(selected))
		}
		if out.flush() != nil || !pause(ctx, sendPeriod) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// pause waits, and reports whether ctx is not done.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// sender writes events, and remembers the first error and what it sent.
type sender struct {
	w    http.ResponseWriter
	sent map[string][]byte
	err  error
}

// extend gives the page more time to receive what is sent next.
func (s *sender) extend(limit time.Duration) {
	if s.err == nil {
		s.err = http.NewResponseController(s.w).SetWriteDeadline(time.Now().Add(limit))
	}
}

// send sends an event unless it is what was sent last.
func (s *sender) send(name string, view any) {
	data, err := json.Marshal(view) // has no line breaks, and escapes <, > and &
	switch {
	case s.err != nil:
		return
	case err != nil:
		s.err = err
		return
	case bytes.Equal(data, s.sent[name]):
		return
	}
	_, s.err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, data)
	s.sent[name] = data
}

// flush sends what is buffered, and at least a comment, which finds out whether the page is
// still there.
func (s *sender) flush() error {
	if s.err != nil {
		return s.err
	}
	if _, s.err = fmt.Fprint(s.w, ":\n\n"); s.err == nil {
		s.err = http.NewResponseController(s.w).Flush()
	}
	return s.err
}
