// SPDX-License-Identifier: Apache-2.0

// Calls: the record of each request, the faults that it may meet, and the ways to forward and
// answer it.

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
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
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
	// Body is what the request sent, and Answer the answer to a write.
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
	return fmt.Sprintf("%s %-6s %s  code %d, watch from %q, initial events %t, unchanged %t, fault %q",
		c.Began.Format("15:04:05.000"), c.Method, c.Path, c.Code, c.Since, c.SendsInitial, c.Unchanged, c.Fault)
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

// Cut closes the connection. The API server has not received the request, unless it is Done.
func Cut(x *Exchange) {
	x.annotate("cut")
	x.cut()
}

// Done forwards the request, and leaves it to another fault then, which does not answer it.
func Done(then Fault) Fault {
	return func(x *Exchange) {
		x.annotate("done")
		x.forward()
		then(x)
	}
}

// Hang keeps the request without forwarding it.
func Hang(x *Exchange) { Hold(nil, Cut)(x) }

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

// Refuse answers with a code and the reason that the API server gives with it. An answer of
// 409 is that to a client that lost a race, and one of 410 that to a watch from a version
// that has been compacted. One of 429 has a Retry-After of a second.
func Refuse(code int) Fault {
	switch code {
	case http.StatusTooManyRequests:
		return RetryAfter(1)
	case http.StatusGone:
		return status(apierrors.NewResourceExpired("too old").ErrStatus)
	}
	return status(apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false).ErrStatus)
}

// DenialText is the message of Denied.
const DenialText = `admission webhook "faults.example.com" denied the request: not today`

// Denied answers with a code and no reason, as for an admission webhook that denies a
// request with its own code.
func Denied(code int) Fault { return status(metav1.Status{Code: int32(code), Message: DenialText}) }

// RetryAfter answers 429 with a Retry-After of some seconds.
func RetryAfter(seconds int) Fault {
	return status(apierrors.NewTooManyRequests("too many requests", seconds).ErrStatus)
}

// RetryAfterText answers 429 as API Priority and Fairness does: with a header and a line
// of text, not with a Status.
func RetryAfterText(seconds int) Fault {
	text := "Too many requests, please try again later.\n"
	return answer(http.StatusTooManyRequests, "text/plain; charset=utf-8", []byte(text), seconds)
}

// status answers with a Status instead of the API server.
func status(with metav1.Status) Fault {
	with.Kind, with.APIVersion, with.Status = "Status", "v1", metav1.StatusFailure
	body, err := json.Marshal(with)
	utilruntime.Must(err)
	retryAfter := 0
	if with.Details != nil {
		retryAfter = int(with.Details.RetryAfterSeconds)
	}
	return answer(int(with.Code), "application/json", body, retryAfter)
}

// answer answers instead of the API server. A retryAfter of 0 seconds is left out.
func answer(code int, contentType string, body []byte, retryAfter int) Fault {
	return func(x *Exchange) {
		x.annotate("answered in place of the API server")
		x.proxy.note(func() { x.Call.Code = code })
		if retryAfter > 0 {
			x.writer.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		}
		x.writer.Header().Set("Content-Type", contentType)
		x.writer.WriteHeader(code)
		_, _ = x.writer.Write(body)
	}
}

// Exchange is a request in progress, for a Fault to handle.
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
	if call := x.Call; x.proxy.namespace != "" && call.Namespace == "" && x.proxy.confined(call) {
		out.URL.Path = "/" + path.Join(call.APIPrefix, call.APIGroup, call.APIVersion, "namespaces", x.proxy.namespace, call.Resource)
	}
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(x.Call.Body)), int64(len(x.Call.Body))
	out.Header.Del("Connection")
	out.Header.Del("Authorization")
	out.Header.Del("Accept-Encoding")
	out.Header.Set("Accept", inJSON(out.Header.Get("Accept")))
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

// inJSON returns what an Accept header asks for, in JSON alone: objects as they are, or as another kind,
// such as PartialObjectMetadata.
func inJSON(accept string) string {
	const asJSON = "application/json"
	var types []string
	for kind := range strings.SplitSeq(accept, ",") {
		_, parameters, _ := strings.Cut(kind, ";")
		if as := asJSON + ";" + parameters; strings.Contains(parameters, "as=") && !slices.Contains(types, as) {
			types = append(types, as)
		}
	}
	return strings.Join(append(types, asJSON), ",")
}
