// SPDX-License-Identifier: Apache-2.0

// Tests of the protocols that the clients use, of watches that resume after a restore of etcd,
// and of initial lists.

package kubeclient

import (
	"context"
	"encoding/pem"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// An informer of Gadgets, in a controller with two workers. It needs a cluster.
func Example() {
	config := &rest.Config{Host: "https://cluster.example.com"} // from options.Cluster.RESTConfig
	clients, err := New(config, 2, 30*time.Second)
	if err != nil {
		panic(err)
	}
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	remedies := Remedies{CRDs: map[string]string{"example.com": "kubectl apply -f crd.yaml"}}
	if err := clients.WaitUntilReadable(context.Background(), remedies, metav1.NamespaceAll, gadgets); err != nil {
		panic(err)
	}
	reader := dynamic.NewForConfigOrDie(clients.InformerConfig) // or a generated clientset
	dynamicinformer.NewDynamicSharedInformerFactory(reader, 0).ForResource(gadgets).Informer().RunWithContext(context.Background())
}

// Watches need HTTP/2's pings. Calls have deadlines, and cost less with HTTP/1.1. Protobuf
// costs less than JSON.
func TestWhichProtocolsClientsUse(t *testing.T) {
	protocols, connections := make(chan string, 1), make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		format, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
		protocols <- r.Proto + " " + format
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
	}{{2, "HTTP/1.1 "}, {keptConnections, "HTTP/1.1 "}, {keptConnections + 1, "HTTP/2.0 "}} {
		clients, err := New(config, row.workers, 0)
		must(t, err)
		ctx, of := t.Context(), map[string]string{}
		for name, client := range map[string]struct {
			rest rest.Interface
			want string
		}{
			"caches of Gadgets":     {kubernetes.NewForConfigOrDie(clients.InformerConfig).AppsV1().RESTClient(), "HTTP/2.0 " + runtime.ContentTypeJSON},
			"caches of ReplicaSets": {clients.KubeInformers.AppsV1().RESTClient(), "HTTP/2.0 " + runtime.ContentTypeProtobuf},
			"Gadgets":               {kubernetes.NewForConfigOrDie(clients.CallConfig).AppsV1().RESTClient(), row.calls + runtime.ContentTypeJSON},
			"ReplicaSets":           {clients.Kube.AppsV1().RESTClient(), row.calls + runtime.ContentTypeProtobuf},
			"Events":                {clients.Events.CoreV1().RESTClient(), "HTTP/1.1 " + runtime.ContentTypeProtobuf},
			"the Lease":             {clients.Election.CoordinationV1().RESTClient(), "HTTP/2.0 " + runtime.ContentTypeProtobuf},
		} {
			must(t, client.rest.Get().Resource("things").Do(ctx).Error())
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

// A typed client's call fails at once, with the server's message and delay.
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
		"a date":                               {429, "Fri, 31 Dec 2027 23:59:59 GMT", "application/json", statusWithout, "too many", 0},
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
			must(t, err)
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
	must(t, err)
	return string(text)
}

// A list precedes a watch that is resumed. If the version is too large, that is the answer for the
// watch, and its cause makes client-go's reflector relist. No other response keeps the watch from
// being opened unchanged.
func TestWatchFromAVersionThatTheServerDoesNotKnowIsRefused(t *testing.T) {
	tooLarge := apierrors.NewTimeoutError("Too large resource version: 1200, current: 1000", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	resumed := metav1.ListOptions{ResourceVersion: "1200", FieldSelector: "metadata.name=a", AllowWatchBookmarks: true, TimeoutSeconds: new(int64(300))}
	withAll := metav1.ListOptions{ResourceVersion: "1200", SendInitialEvents: new(true)}
	const list = "list fieldSelector=metadata.name%3Da&limit=1&resourceVersion=1200&resourceVersionMatch=NotOlderThan"
	const watch = "watch allowWatchBookmarks=true&fieldSelector=metadata.name%3Da&resourceVersion=1200&timeout=5m0s&timeoutSeconds=300&watch=true"
	for name, row := range map[string]struct {
		options metav1.ListOptions
		answer  error // to the list
		want    []string
	}{
		"too large":         {resumed, tooLarge, []string{list}},
		"nothing wrong":     {resumed, nil, []string{list, watch}},
		"a timeout":         {resumed, apierrors.NewTimeoutError("slow", 1), []string{list, watch}},
		"forbidden":         {resumed, forbidden, []string{list, watch}},
		"without a version": {metav1.ListOptions{}, tooLarge, []string{"watch watch=true"}},
		"from any version":  {metav1.ListOptions{ResourceVersion: "0"}, tooLarge, []string{"watch resourceVersion=0&watch=true"}},
		"with all objects":  {withAll, tooLarge, []string{"watch resourceVersion=1200&sendInitialEvents=true&watch=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fakeServer) {
				f.answer(answers{listReplicaSets: row.answer})
				began := time.Now()
				watcher, err := f.clients.KubeInformers.AppsV1().ReplicaSets("team-a").Watch(f.ctx, row.options)
				if err == nil {
					watcher.Stop()
				}
				var sent []string
				for i, request := range f.requests {
					verb, _, _ := strings.Cut(request, " ")
					sent = append(sent, verb+" "+f.queries[i])
				}
				if !slices.Equal(sent, row.want) || time.Since(began) > 0 {
					t.Errorf("in %v the server got %q, not %q at once", time.Since(began), sent, row.want)
				}
				if refused := len(row.want) == 1 && row.want[0] == list; refused != (err != nil) || refused != apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
					t.Errorf("the watch ended with %v", err)
				}
			})
		})
	}
}

func TestAListFollowsAStreamOnlyIfTheServerRefusedThat(t *testing.T) {
	answers := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "watch", gadgetsResource.GroupResource(), "", "", 0, true)
	}
	unsupported, unavailable := answers(http.StatusUnprocessableEntity), answers(http.StatusServiceUnavailable)
	for name, c := range map[string]struct {
		streams []error // the answer to each
		want    bool
	}{
		"none sent":                   {nil, true},
		"not supported":               {[]error{unsupported}, true},
		"forbidden":                   {[]error{forbidden}, true},
		"ended early":                 {[]error{nil}, false},
		"unavailable":                 {[]error{unavailable}, false},
		"connection lost":             {[]error{io.ErrUnexpectedEOF}, false},
		"supported since an upgrade":  {[]error{unsupported, nil}, false},
		"no longer supported":         {[]error{nil, unsupported}, true},
		"unavailable, then forbidden": {[]error{unavailable, forbidden}, true},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fakeServer) {
				send := func(request string) error {
					return f.clients.KubeInformers.Discovery().RESTClient().Get().RequestURI(request).Do(f.ctx).Error()
				}
				for _, answer := range c.streams {
					f.answer(map[string]error{watchGadgets: answer})
					_ = send(gadgetsPath + "?watch=true&sendInitialEvents=true")
				}
				f.answer(nil)
				const list = "?limit=500&resourceVersion=7"
				if err := send(gadgetsPath + list); (err == nil) != c.want || (f.count(listGadgets) == 1) != c.want {
					t.Errorf("%d lists were sent, and the error is: %v", f.count(listGadgets), err)
				}
				for _, other := range []string{"/bars" + list, gadgetsPath + list + "&resourceVersionMatch=Exact", gadgetsPath + "?watch=true&resourceVersion=1"} {
					must(t, send(other))
				}
			})
		})
	}
}
