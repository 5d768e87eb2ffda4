// SPDX-License-Identifier: Apache-2.0

// Calls: the record of each request, and the faults that it may meet.

package proxy

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Call is one request and its result.
type Call struct {
	// RequestInfo has the verb, and the namespace, resource, subresource and name of the
	// object.
	request.RequestInfo
	Method string
	// Since is the resourceVersion from which a watch continues. SendsInitial is true if it
	// begins with the objects that exist.
	Since        string
	SendsInitial bool
	// Token is the bearer token that the client sent.
	Token string
	Began time.Time
	// Code is the status code that the API server or a fault answered, or 0 before that.
	Code int
	// Unchanged is true if an update left the object as it was.
	Unchanged bool
	// Fault describes what the proxy did to the request, if anything.
	Fault string
	// Body is what a write sent, and Answer the answer to it.
	Body, Answer []byte
}

// IsWatch reports whether the request is a watch.
func (c *Call) IsWatch() bool { return c.Verb == "watch" }

// IsWrite reports whether the request is a write.
func (c *Call) IsWrite() bool {
	return c.Method != http.MethodGet && c.Method != http.MethodHead && c.Method != http.MethodOptions
}

// IsWork reports whether the request is a write to a Foo or a Deployment.
func (c *Call) IsWork() bool { return c.IsWrite() && isFooOrDeployment(c.Resource) }

func isFooOrDeployment(resource string) bool { return resource == "foos" || resource == "deployments" }

// Succeeded reports whether the request was answered with success.
func (c *Call) Succeeded() bool { return c.Code >= 200 && c.Code < 300 }

// Short returns the method and the object (resource, name, subresource), which do not differ
// from run to run.
func (c *Call) Short() string {
	return c.Method + " " + path.Join(c.Resource, c.Name, c.Subresource)
}

// String returns the request in one line.
func (c *Call) String() string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s %-6s %s", c.Began.Format("15:04:05.000"), c.Method, c.Path)
	for _, part := range []struct {
		shown bool
		text  string
	}{
		{c.IsWatch(), fmt.Sprintf(" watch from %q, initial events: %t", c.Since, c.SendsInitial)},
		{c.Code != 0, fmt.Sprintf("  %d", c.Code)},
		{c.Unchanged, " (unchanged)"},
		{c.Fault != "", "  ! " + c.Fault},
	} {
		if part.shown {
			line.WriteString(part.text)
		}
	}
	return line.String()
}

// newCall parses a request's URL and headers.
func newCall(r *http.Request) *Call {
	parser := request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}
	info, err := parser.NewRequestInfo(r)
	if err != nil {
		info = &request.RequestInfo{Path: r.URL.Path} // no object of the API
	}
	query := r.URL.Query()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return &Call{
		RequestInfo: *info, Method: r.Method, Token: token,
		Since: query.Get("resourceVersion"), SendsInitial: query.Get("sendInitialEvents") == "true",
	}
}

// A Fault handles a request. It must not change the Exchange after it returns.
type Fault func(*Exchange)

// Forward is the fault that is none: the API server's answer, even if that takes a moment.
func Forward(x *Exchange) {
	x.forward()
	x.reply()
}

// Cut closes the connection before the API server receives the request.
func Cut(x *Exchange) {
	x.annotate("cut before the API server received it")
	x.cut()
}

// LoseReply forwards the request, and closes the connection without the answer.
func LoseReply(x *Exchange) {
	x.annotate("done, reply lost")
	x.forward()
	x.cut()
}

// Hang keeps the request without forwarding it.
func Hang(x *Exchange) { Hold(nil, Cut)(x) }

// HangDone forwards the request, and never answers.
func HangDone(x *Exchange) {
	x.forward()
	Hang(x)
}

// Abandoned is part of the description of a Hold whose end the client did not wait for.
const Abandoned = "abandoned by the client"

// Hold keeps the request until release is closed, and leaves it to another fault then.
func Hold(release <-chan struct{}, then Fault) Fault {
	return func(x *Exchange) {
		x.annotate("held")
		select {
		case <-release:
			then(x)
		case <-x.request.Context().Done():
			x.annotate(Abandoned)
			x.cut()
		}
	}
}

// Delay forwards the request after a time.
func Delay(howLong time.Duration) Fault {
	return func(x *Exchange) {
		ctx, cancel := context.WithTimeout(x.proxy.life, howLong)
		defer cancel()
		Hold(ctx.Done(), Forward)(x)
	}
}

// CutAndLater closes the connection, and forwards the request once begin is closed, like
// a packet that is delayed in the network.
func CutAndLater(begin <-chan struct{}) Fault {
	return func(x *Exchange) {
		x.annotate("cut, done later")
		x.proxy.late.Go(func() {
			select {
			case <-begin:
				x.forward()
			case <-x.proxy.life.Done():
			}
		})
		x.cut()
	}
}

// Before calls do, which may kill the client, and does not forward the request.
func Before(what string, do func()) Fault {
	return func(x *Exchange) {
		x.annotate(what + " before it was done")
		do()
		x.cut()
	}
}

// After forwards the request, then calls do, which may kill the client, and does not
// answer.
func After(what string, do func()) Fault {
	return func(x *Exchange) {
		x.annotate(what + " after it was done")
		x.forward()
		do()
		x.cut()
	}
}

// Refuse answers with a code and the reason that the API server gives with it. An answer of
// 409 is that to a client that lost a race, and one of 410 that to a watch from a version
// that has been compacted. One of 429 has a Retry-After of a second.
func Refuse(code int) Fault {
	reasons := map[int]metav1.StatusReason{
		http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
		http.StatusForbidden:           metav1.StatusReasonForbidden,
		http.StatusConflict:            metav1.StatusReasonConflict,
		http.StatusGone:                metav1.StatusReasonExpired,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusInternalServerError: metav1.StatusReasonInternalError,
		http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	}
	if code == http.StatusTooManyRequests {
		return RetryAfter(1)
	}
	return func(x *Exchange) { x.answer(code, reasons[code], http.StatusText(code), 0) }
}

// DenialText is the message of Denied.
const DenialText = `admission webhook "faults.example.com" denied the request: not today`

// Denied answers with a code and no reason, as for an admission webhook that denies a
// request with a code of its own.
func Denied(code int) Fault {
	return func(x *Exchange) { x.answer(code, "", DenialText, 0) }
}

// RetryAfter answers 429 with a Retry-After of some seconds.
func RetryAfter(seconds int) Fault {
	return func(x *Exchange) {
		x.answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests", seconds)
	}
}

// RetryAfterText answers 429 as API Priority and Fairness does: with a header and a line
// of text, not with a Status.
func RetryAfterText(seconds int) Fault {
	return func(x *Exchange) {
		text := "Too many requests, please try again later.\n"
		x.answerWith(http.StatusTooManyRequests, "text/plain; charset=utf-8", []byte(text), seconds)
	}
}
