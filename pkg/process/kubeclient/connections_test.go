// SPDX-License-Identifier: Apache-2.0

// Tests of connections that go dead, of outages, and of the limit of requests.

package kubeclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// An answer whose bytes stop coming ends with an error that makes client-go resume a watch. The
// answer of a healthy server does not, however quiet: with or without bookmarks, it ends a watch
// over HTTP/1.1 at the time that the client asks for.
func TestASilentAnswerEnds(t *testing.T) {
	const list, first, resumed = "limit=500", "watch=true&sendInitialEvents=true&timeoutSeconds=400", "watch=true&resourceVersion=7&timeoutSeconds=400"
	const noHeader = -1
	for name, row := range map[string]struct {
		protocol int
		query    string
		begins   time.Duration // of the answer; noHeader is never
		pause    time.Duration // between its bytes
		work     time.Duration // of the reader, before each
		bytes    int
		ends     time.Duration // after the last of them
		lasts    string        // the timeoutSeconds that the server gets
	}{
		"a resumed watch":                     {1, resumed, 0, 0, 0, 0, 40 * time.Second, "30"},
		"a resumed watch without a header":    {1, resumed, noHeader, 0, 0, 0, 40 * time.Second, "30"},
		"a resumed watch with events":         {1, resumed, 0, 35 * time.Second, 0, 20, 40 * time.Second, "30"},
		"a watch whose reader is busy":        {1, resumed, 0, 0, time.Hour, 3, 40 * time.Second, "30"},
		"a watch from all objects":            {1, first, 0, 0, 0, 0, 2 * time.Minute, "400"},
		"a watch from all objects, later":     {1, first, time.Minute, 35 * time.Second, 0, 20, 40 * time.Second, "400"},
		"a list":                              {1, list, 0, 100 * time.Second, 0, 20, 2 * time.Minute, ""},
		"a list without a header":             {2, list, noHeader, 0, 0, 0, 2 * time.Minute, ""},
		"a watch over HTTP/2":                 {2, resumed, 0, 0, 0, 0, 2 * time.Minute, "400"},
		"a watch over HTTP/2, with bookmarks": {2, resumed, 0, time.Minute, 0, 60, 2 * time.Minute, "400"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lasts string
				server := roundTripFunc(func(r *http.Request) (*http.Response, error) {
					if r.URL.RawQuery == "" { // so that the client knows the protocol
						return &http.Response{StatusCode: http.StatusOK, ProtoMajor: row.protocol, Body: http.NoBody}, nil
					}
					lasts = r.URL.Query().Get("timeoutSeconds")
					if row.begins == noHeader {
						<-r.Context().Done()
						return nil, r.Context().Err()
					}
					<-time.After(row.begins)
					body, sent := io.Pipe()
					context.AfterFunc(r.Context(), func() { sent.CloseWithError(r.Context().Err()) })
					go func() {
						for range row.bytes {
							<-time.After(row.pause)
							_, _ = sent.Write([]byte("x"))
						}
					}()
					return &http.Response{StatusCode: http.StatusOK, ProtoMajor: row.protocol, Body: body}, nil
				})
				config := &rest.Config{Transport: server}
				config.Wrap((&connections{}).boundSilence)
				transport, err := rest.TransportFor(config)
				must(t, err)
				send := func(query string) (*http.Response, error) {
					target := &url.URL{Scheme: "https", Host: "cluster", Path: "/gadgets", RawQuery: query}
					return transport.RoundTrip((&http.Request{Method: http.MethodGet, URL: target}).WithContext(t.Context()))
				}
				earlier, err := send("")
				must(t, err)
				earlier.Body.Close()
				read, began := 0, time.Now()
				response, err := send(row.query)
				if err == nil {
					defer response.Body.Close()
				}
				for n := 0; err == nil; read += n {
					<-time.After(row.work)
					n, err = response.Body.Read(make([]byte, 1))
				}
				want := max(row.begins, 0) + row.work + time.Duration(row.bytes)*(row.pause+row.work) + row.ends
				if took := time.Since(began); took != want || read != row.bytes || !utilnet.IsTimeout(err) {
					t.Errorf("it ended after %v, not %v, with %d bytes and %v", took, want, read, err)
				}
				if lasts != row.lasts {
					t.Errorf("the server got the timeout %q, not %q", lasts, row.lasts)
				}
			})
		})
	}
}

// A minute without an API server has one line when it is noticed, and one when it is over. After
// a failure, the next call gets a new connection.
func TestAnOutageIsLoggedOnce(t *testing.T) {
	refused, unavailable := errors.New("connection refused"), apierrors.NewServiceUnavailable("no")
	for name, row := range map[string]struct {
		before, failure error
		lasts           time.Duration
		lines           int
		closes          bool
	}{
		"refused":             {nil, refused, time.Minute, 2, true},
		"unavailable":         {nil, unavailable, time.Minute, 2, true},
		"short":               {nil, refused, 9 * time.Second, 0, true},
		"an answer":           {nil, apierrors.NewTooManyRequests("no", 0), time.Minute, 0, false},
		"before any answer":   {refused, refused, time.Minute, 0, true},
		"the caller ended it": {nil, context.Canceled, time.Minute, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fakeServer) {
				transport := (&connections{}).observe(f)
				call := func(failure error) {
					ctx, cancel := context.WithCancel(f.ctx)
					defer cancel()
					if errors.Is(failure, context.Canceled) {
						cancel()
					}
					f.answer(answers{"list /things": failure})
					request := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/things"}}
					if response, err := transport.RoundTrip(request.WithContext(ctx)); err == nil {
						response.Body.Close()
					}
				}
				call(row.before)
				f.closed = 0
				for range row.lasts / time.Second {
					call(row.failure)
					advance(time.Second)
				}
				call(nil)
				advance(outageNotice)
				said := f.log.String()
				if strings.Count(said, "API server") != row.lines || strings.Count(said, `after="1m0s"`) != row.lines/2 || (f.closed > 0) != row.closes {
					t.Errorf("idle connections were closed %d times, and the log is:\n%s", f.closed, said)
				}
			})
		})
	}
}

// -kube-api-qps is the limit of the program, not of each of its clients. The Lease waits for none.
func TestTheLimitOfRequestsHoldsForAllClientsButTheLeases(t *testing.T) {
	run(t, func(t *testing.T, f *fakeServer) {
		c, err := New(&rest.Config{Host: "https://cluster", QPS: 1, Burst: 1, Transport: f}, 2, time.Minute)
		must(t, err)
		lease, began := c.Election.CoordinationV1().RESTClient(), time.Now()
		for i, client := range []rest.Interface{
			lease, lease, c.KubeInformers.AppsV1().RESTClient(), c.Kube.AppsV1().RESTClient(), kubernetes.NewForConfigOrDie(c.InformerConfig).AppsV1().RESTClient(),
			kubernetes.NewForConfigOrDie(c.CallConfig).AppsV1().RESTClient(), c.Events.CoreV1().RESTClient(), c.Reviews.AuthenticationV1().RESTClient(),
		} {
			_ = client.Get().Resource("things").Do(f.ctx).Error()
			if took := time.Since(began).Round(time.Millisecond); took != time.Duration(max(i-2, 0))*time.Second {
				t.Errorf("request %d came after %v", i+1, took)
			}
		}
	})
}
