// SPDX-License-Identifier: Apache-2.0

// Calls: the record of each request, and the faults that it may meet.

package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Call is one request and its result.
type Call struct {
	Method string
	// Path includes the resourceVersion and sendInitialEvents of a watch, and no other
	// query.
	Path        string
	Namespace   string
	Resource    string
	Name        string
	Subresource string
	Watch       bool
	// Token is the bearer token that the client sent.
	Token string
	// Write numbers the writes to Foos and Deployments from 1. It is 0 for all other
	// requests.
	Write int
	Began time.Time
	// Code is the status code that the API server or a fault answered, or 0 before that.
	Code int
	// Version is the resourceVersion of the object in the answer. Unchanged is true if an
	// update left the object as it was.
	Version   string
	Unchanged bool
	// Abandoned is true if the client did not wait for the answer.
	Abandoned bool
	// Fault describes what the proxy did to the request, if anything.
	Fault string
	// Body is what a write sent, and Answer the answer to it.
	Body, Answer []byte
}

// IsWrite reports whether the request is a write.
func (c *Call) IsWrite() bool {
	return c.Method != http.MethodGet && c.Method != http.MethodHead && c.Method != http.MethodOptions
}

// IsWork reports whether the request is a write to a Foo or a Deployment.
func (c *Call) IsWork() bool {
	return c.IsWrite() && (c.Resource == "foos" || c.Resource == "deployments")
}

// Succeeded reports whether the request was answered with success.
func (c *Call) Succeeded() bool { return c.Code >= 200 && c.Code < 300 }

// Target names the object of the request: resource, name, subresource.
func (c *Call) Target() string {
	parts := []string{c.Resource}
	for _, part := range []string{c.Name, c.Subresource} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// Short returns method and target, which do not differ from run to run.
func (c *Call) Short() string { return c.Method + " " + c.Target() }

// String returns the request in one line.
func (c *Call) String() string {
	line := fmt.Sprintf("%s %-6s %s", c.Began.Format("15:04:05.000"), c.Method, c.Path)
	if c.Write > 0 {
		line += fmt.Sprintf("  write %d", c.Write)
	}
	if c.Code != 0 {
		line += fmt.Sprintf("  %d", c.Code)
	}
	if c.Version != "" {
		line += " rv=" + c.Version
	}
	if c.Unchanged {
		line += " (unchanged)"
	}
	if c.Fault != "" {
		line += "  ! " + c.Fault
	}
	return line
}

// newCall parses a request's URL and headers.
func newCall(r *http.Request) *Call {
	query := r.URL.Query()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	c := &Call{Method: r.Method, Path: r.URL.Path, Token: token, Watch: query.Get("watch") == "true" || query.Get("watch") == "1"}
	if c.Watch {
		c.Path += "?watch&resourceVersion=" + query.Get("resourceVersion")
		if query.Get("sendInitialEvents") == "true" {
			c.Path += "&sendInitialEvents"
		}
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch parts[0] {
	case "api":
		parts = parts[min(len(parts), 2):]
	case "apis":
		parts = parts[min(len(parts), 3):]
	default:
		return c
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		c.Namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&c.Resource, &c.Name, &c.Subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	return c
}

// Cut closes the connection before the API server receives the request.
func Cut(x *Exchange) {
	x.annotate("cut before the API server received it")
	x.Cut()
}

// LoseReply forwards the request, and closes the connection without the answer.
func LoseReply(x *Exchange) {
	x.annotate("done, reply lost")
	x.Forward()
	x.Cut()
}

// Hang keeps the request without forwarding it.
func Hang(x *Exchange) {
	x.annotate("hangs")
	<-x.Gone()
	x.Cut()
}

// HangDone forwards the request, and never answers.
func HangDone(x *Exchange) {
	x.annotate("done, never answered")
	x.Forward()
	<-x.Gone()
	x.Cut()
}

// Hold keeps the request until release is closed, then forwards it.
func Hold(release <-chan struct{}) Fault {
	return func(x *Exchange) {
		x.annotate("held")
		select {
		case <-release:
		case <-x.Gone():
			x.annotate("abandoned by the client")
			x.proxy.note(func() { x.Call.Abandoned = true })
			x.Cut()
		}
		x.Forward()
		x.Reply()
	}
}

// Delay forwards the request after a time.
func Delay(howLong time.Duration) Fault {
	return func(x *Exchange) {
		timer := time.NewTimer(howLong)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-x.Gone():
			x.Cut()
		}
		x.Forward()
		x.Reply()
	}
}

// CutAndLater closes the connection, and forwards the request once begin is closed, like
// a packet that is delayed in the network.
func CutAndLater(begin <-chan struct{}) Fault {
	return func(x *Exchange) {
		x.annotate("cut, done later")
		x.Later(begin)
		x.Cut()
	}
}

// Before calls do, which may kill the client, and does not forward the request.
func Before(what string, do func()) Fault {
	return func(x *Exchange) {
		x.annotate(what + " before it was done")
		do()
		x.Cut()
	}
}

// After forwards the request, then calls do, which may kill the client, and does not
// answer.
func After(what string, do func()) Fault {
	return func(x *Exchange) {
		x.annotate(what + " after it was done")
		x.Forward()
		do()
		x.Cut()
	}
}

// Conflict answers 409, as if another client had written first.
func Conflict(x *Exchange) {
	x.Answer(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified; please apply your changes to the latest version", 0)
}

// DenialText is the message of Denied.
const DenialText = `admission webhook "faults.example.com" denied the request: not today`

// Denied answers with a code and no reason, as for an admission webhook that denies a
// request with a code of its own.
func Denied(code int) Fault {
	return func(x *Exchange) { x.Answer(code, "", DenialText, 0) }
}

// TooMany answers 429 with a Retry-After of one second.
func TooMany(x *Exchange) {
	x.Answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests", 1)
}

// RetryAfter answers 429 with a Retry-After of some seconds.
func RetryAfter(seconds int) Fault {
	return func(x *Exchange) {
		x.Answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests", seconds)
	}
}

// RetryAfterText answers 429 as API Priority and Fairness does: with a header and a line
// of text, not with a Status.
func RetryAfterText(seconds int) Fault {
	return func(x *Exchange) {
		x.AnswerText(http.StatusTooManyRequests, "Too many requests, please try again later.", seconds)
	}
}

// Internal answers 500.
func Internal(x *Exchange) {
	x.Answer(http.StatusInternalServerError, metav1.StatusReasonInternalError, "an internal error", 0)
}

// Unavailable answers 503.
func Unavailable(x *Exchange) {
	x.Answer(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "not available", 0)
}

// Forbidden answers 403.
func Forbidden(x *Exchange) {
	x.Answer(http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden", 0)
}

// Unauthorized answers 401.
func Unauthorized(x *Exchange) {
	x.Answer(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized", 0)
}

// Expired answers 410, as for a watch from a resourceVersion that has been compacted.
func Expired(x *Exchange) {
	x.Answer(http.StatusGone, metav1.StatusReasonExpired, "too old resource version", 0)
}
