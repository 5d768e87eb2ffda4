// SPDX-License-Identifier: Apache-2.0

// Tests of the protocols that the clients use.

package kubeclient

import (
	"encoding/pem"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/test/footest"
)

// Watches need HTTP/2's pings. Calls have deadlines, and cost less with HTTP/1.1.
func TestWhichClientsUseHTTP2(t *testing.T) {
	protocols, connections := make(chan string, 1), make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocols <- r.Proto
		connections <- r.RemoteAddr
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}

	for _, row := range []struct {
		workers int
		calls   string
	}{{2, "HTTP/1.1"}, {keptConnections, "HTTP/1.1"}, {keptConnections + 1, "HTTP/2.0"}} {
		clients, err := New(config, row.workers, 0)
		footest.Must(t, err)
		ctx, of := t.Context(), map[string]string{}
		for name, client := range map[string]struct {
			rest rest.Interface
			want string
		}{
			"caches of Foos":        {clients.FooInformers.SamplecontrollerV1alpha1().RESTClient(), "HTTP/2.0"},
			"caches of ReplicaSets": {clients.KubeInformers.AppsV1().RESTClient(), "HTTP/2.0"},
			"Foos":                  {clients.Foos.SamplecontrollerV1alpha1().RESTClient(), row.calls},
			"ReplicaSets":           {clients.Kube.AppsV1().RESTClient(), row.calls},
			"Events":                {clients.Events.CoreV1().RESTClient(), "HTTP/1.1"},
			"the Lease":             {clients.Election.CoordinationV1().RESTClient(), "HTTP/2.0"},
		} {
			footest.Must(t, client.rest.Get().Resource("things").Do(ctx).Error())
			if got := <-protocols; got != client.want {
				t.Errorf("%d workers: requests for %s use %s, not %s", row.workers, name, got, client.want)
			}
			of[name] = <-connections
		}
		for name, connection := range of {
			if name != "the Lease" && connection == of["the Lease"] {
				t.Errorf("%d workers: the Lease is renewed over the connection for %s", row.workers, name)
			}
		}
	}
}

const (
	statusJSON = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too many","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":7}}`
	// statusWithout is a Status without the seconds, which are only in the header.
	statusWithout = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too many","reason":"TooManyRequests","code":429}`
)

// The call of a typed client fails at once, with the server's message and delay.
func TestACallFailsAtOnceWithTheTimeToWait(t *testing.T) {
	for name, row := range map[string]struct {
		code              int
		retryAfter        string
		contentType, body string
		message           string
		seconds           int
	}{
		"a Status":                             {429, "7", "application/json", statusJSON, "too many", 7},
		"a Status as protobuf":                 {429, "7", runtime.ContentTypeProtobuf, protobuf(t), "too many", 7},
		"a Status that lacks the seconds":      {429, "7", "application/json", statusWithout, "too many", 7},
		"plain text, of Priority and Fairness": {429, "7", "text/plain; charset=utf-8", "Too many requests, please try again later.\n", "too many requests", 7},
		"a proxy's page":                       {503, "7", "text/html", "<html>down</html>", "unable to handle the request", 7},
		"a proxy's JSON":                       {503, "7", "application/json", `{"error":"down"}`, "unable to handle the request", 7},
		"nothing at all":                       {503, "7", "", "", "", 7},
		"more seconds than a Status can say":   {503, "4294967303", "text/html", "<html>down</html>", "unable to handle the request", math.MaxInt32},
		"the same, beside a Status":            {429, "4294967303", "application/json", statusWithout, "too many", math.MaxInt32},
		"no time":                              {500, "", "application/json", strings.ReplaceAll(statusWithout, "429", "500"), "too many", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				if row.retryAfter != "" {
					w.Header().Set("Retry-After", row.retryAfter)
				}
				w.Header().Set("Content-Type", row.contentType)
				w.WriteHeader(row.code)
				_, _ = io.WriteString(w, row.body)
			}))
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1, WrapTransport: handOverRetryAfter,
				ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + ",application/json"}})
			footest.Must(t, err)
			_, err = client.AppsV1().ReplicaSets("team-a").Get(t.Context(), "web", metav1.GetOptions{})
			if n := calls.Load(); n != 1 {
				t.Errorf("the request was sent %d times, not once", n)
			}
			if seconds, _ := apierrors.SuggestsClientDelay(err); seconds != row.seconds {
				t.Errorf("the error says to wait %d seconds, not %d: %v", seconds, row.seconds, err)
			}
			if err == nil || !strings.Contains(err.Error(), row.message) {
				t.Errorf("the error is %v, and does not say %q", err, row.message)
			}
		})
	}
}

func protobuf(t *testing.T) string {
	t.Helper()
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	text, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, metav1.SchemeGroupVersion), &apierrors.NewTooManyRequests("too many", 7).ErrStatus)
	footest.Must(t, err)
	return string(text)
}

func TestAnAnswerIsLeftAlone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", r.URL.Query().Get("after"))
		if r.URL.Path == "/busy" {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = io.WriteString(w, "text")
	}))
	defer server.Close()
	for _, path := range []string{"/?after=7", "/busy?after=Fri,+31+Dec+2027+23:59:59+GMT"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
		footest.Must(t, err)
		response, err := handOverRetryAfter(http.DefaultTransport).RoundTrip(request)
		footest.Must(t, err)
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if string(body) != "text" || response.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %q, %v", path, body, response.Header)
		}
	}
}
