// SPDX-License-Identifier: Apache-2.0

// Connections that silently go dead, and outages of the API server.

package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/klog/v2"
)

const (
	// shortWatch is how long a watch over HTTP/1.1 lasts.
	shortWatch = 30 * time.Second
	// watchSilence is how long it may send nothing. The API server may be late by the
	// difference.
	watchSilence = shortWatch + 10*time.Second
	// longestSilence bounds the pauses of all other answers. The API server sends a bookmark
	// each minute to a watch, and by default ends a list after a minute. A watch that begins
	// with all objects may first wait for the API server's cache.
	longestSilence = 2 * time.Minute
	// outageNotice is how long the API server may fail before the log says so.
	outageNotice = 10 * time.Second
)

// errSilent is a timeout for client-go: a watch that ends with it is resumed without a list.
var errSilent = fmt.Errorf("the API server sent nothing for too long: %w", os.ErrDeadlineExceeded)

type roundTripFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripFunc) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// connections has the transports of all clients, and knows whether the API server answers.
type connections struct {
	mu         sync.Mutex
	transports []http.RoundTripper
	// reached is true once the API server has answered. Before, WaitUntilReadable reports why
	// it does not.
	reached bool
	// failing is the time of the first failure since the last answer, or zero, and cause the
	// latest one. reported says whether the log has it.
	failing  time.Time
	cause    error
	reported bool
}

// boundSilence ends requests whose answer stops coming although the connection is open, as
// when a load balancer has forgotten it. The API server's timeout of a watch can't help,
// because the end of the watch would not arrive either.
//
// HTTP/2 pings a silent connection after 30 s and closes it 15 s later. HTTP/1.1 has no
// pings, so this transport asks for watches of 30 s: the API server sends a bookmark 2 s
// before it ends a watch. So each watch soon has an answer or is dead, and the next one
// starts at a recent resourceVersion, over the same connection. For an informer at rest
// this costs two requests, with that of guardWatches, every 30 s.
//
// It is a transport.WrapperFunc, for rest.Config.Wrap.
func (c *connections) boundSilence(next http.RoundTripper) http.RoundTripper {
	var http1 atomic.Bool // of the last answer
	return roundTripFunc(func(request *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancelCause(request.Context())
		request = request.Clone(ctx)
		query, silence := request.URL.Query(), longestSilence
		if http1.Load() && resumesWatch(query) {
			query.Set("timeoutSeconds", strconv.Itoa(int(shortWatch.Seconds())))
			request.URL.RawQuery, silence = query.Encode(), watchSilence
		}
		timer := time.AfterFunc(silence, func() {
			klog.FromContext(ctx).V(2).Info("Ending a silent request; it is sent again over a new connection", "path", request.URL.Path)
			cancel(errSilent)
		})
		response, err := next.RoundTrip(request)
		timer.Stop()
		if err != nil {
			err = errorOf(ctx, err)
			cancel(nil)
			return nil, err
		}
		http1.Store(response.ProtoMajor == 1)
		body := &boundBody{ReadCloser: response.Body, timer: timer, silence: silence, afterByte: silence, cancel: cancel}
		if http1.Load() && query.Has("watch") {
			body.afterByte = watchSilence
		}
		body.failed = func(err error) error {
			c.failed(ctx, err)
			return errorOf(ctx, err)
		}
		response.Body = body
		return response, nil
	})
}

// errorOf returns errSilent if that is why a request has failed.
func errorOf(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// boundBody is an answer that may pause only for a time while someone reads it.
type boundBody struct {
	io.ReadCloser
	timer *time.Timer
	// silence is how long the next read may take, and afterByte those after it.
	silence, afterByte time.Duration
	failed             func(error) error
	cancel             context.CancelCauseFunc
}

// Read implements io.Reader.
func (b *boundBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.silence)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if n > 0 {
		b.silence = b.afterByte
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.failed(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// observe records failures and answers. It is a transport.WrapperFunc, for
// rest.Config.Wrap.
func (c *connections) observe(next http.RoundTripper) http.RoundTripper {
	c.mu.Lock()
	c.transports = append(c.transports, next)
	c.mu.Unlock()
	return roundTripFunc(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		switch {
		case err != nil:
			c.failed(request.Context(), err)
		case response.StatusCode >= http.StatusBadGateway && response.StatusCode <= http.StatusGatewayTimeout:
			c.failed(request.Context(), errors.New(response.Status))
		default:
			c.answered(request.Context())
		}
		return response, err
	})
}

// failed closes the idle connections of all clients, which may be dead, too: otherwise the
// next calls would each wait for their timeout. It reports an outage if no answer follows.
func (c *connections) failed(ctx context.Context, cause error) {
	cause = errorOf(ctx, cause)
	if errors.Is(ctx.Err(), context.Canceled) && !errors.Is(cause, errSilent) {
		return // the caller has ended it
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.transports {
		utilnet.CloseIdleConnectionsFor(t)
	}
	c.cause = cause
	if !c.reached || !c.failing.IsZero() {
		return
	}
	began := time.Now()
	c.failing = began
	time.AfterFunc(outageNotice, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.failing.Equal(began) {
			c.reported = true
			klog.FromContext(ctx).Info("The API server can't be reached or fails; retrying", "for", outageNotice, "cause", c.cause.Error())
		}
	})
}

// answered ends an outage.
func (c *connections) answered(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reached = true
	if c.failing.IsZero() {
		return
	}
	if c.reported {
		klog.FromContext(ctx).Info("The API server answers again", "after", time.Since(c.failing).Round(time.Second))
	}
	c.failing, c.reported = time.Time{}, false
}
