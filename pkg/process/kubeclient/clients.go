// SPDX-License-Identifier: Apache-2.0

// Package kubeclient creates a controller's clients of the API server, one for each purpose, and
// waits at start until the informers can list and watch: until the CustomResourceDefinition is
// installed and the permissions are granted.
//
// Transports do what client-go leaves to its callers: they detect that etcd was restored from
// a backup, and that a connection or the API server is gone, bound the memory for an initial
// list, and pass Retry-After on to the work queue, as an error from which
// apierrors.SuggestsClientDelay reads the seconds.
//
// New makes the clients of built-in kinds. For custom resources, pass InformerConfig and CallConfig
// to the NewForConfig of a generated clientset, or of client-go's package dynamic. Call
// WaitUntilReadable before the informers start. Its messages name the flags -kubeconfig and
// -master, as package options defines them.
//
// The API server sees a connection for each purpose and worker, instead of one, and a small list
// before each resumed watch: every 5 to 10 minutes, over HTTP/1.1 every 30 s. The package needs no
// permission except those that it waits for.
package kubeclient

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Clients holds a client for each purpose. Informers, syncs, Events, the election and the
// metrics each have their own connections, so that none waits for another. Above all,
// renewing the Lease waits for nothing else: it has no part in their limit of requests.
type Clients struct {
	// KubeInformers fills the caches of built-in kinds. InformerConfig is for clients that fill
	// those of custom resources.
	KubeInformers  kubernetes.Interface
	InformerConfig *rest.Config
	// Kube makes the calls of the syncs. CallConfig is for clients that make those about custom
	// resources.
	Kube       kubernetes.Interface
	CallConfig *rest.Config
	// Events writes Events.
	Events kubernetes.Interface
	// Election acquires, renews and watches the Lease.
	Election kubernetes.Interface
	// Reviews asks the API server who may get the metrics.
	Reviews kubernetes.Interface

	host           string
	requestTimeout time.Duration
}

// New creates Clients from one configuration, for a number of workers. The limit of requests in
// it, QPS and Burst, is that of all clients together, but not of Election. Calls of Events and
// Reviews, and those of WaitUntilReadable, time out after requestTimeout; a sync sets the
// deadlines of its calls itself. New sends no request: an error means that config is invalid.
func New(config *rest.Config, workers int, requestTimeout time.Duration) (*Clients, error) {
	c := Clients{host: config.Host, requestTimeout: requestTimeout}
	conns := &connections{}
	config = rest.CopyConfig(config)
	config.Wrap(conns.observe)
	lease := rest.CopyConfig(config)
	lease.Wrap(conns.boundSilence)
	lease.QPS = -1
	if config.QPS > 0 { // client-go would give each client such a limit
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	}
	informers := rest.CopyConfig(config)
	informers.Wrap(conns.boundSilence)
	c.InformerConfig, c.CallConfig = forInformers(informers), forCalls(config, workers)
	var errs [5]error
	c.KubeInformers, errs[0] = kubernetes.NewForConfig(withProtobuf(c.InformerConfig))
	c.Kube, errs[1] = kubernetes.NewForConfig(withProtobuf(c.CallConfig))
	c.Events, errs[2] = kubernetes.NewForConfig(forCalls(apart(config, "events", requestTimeout), 1))
	// No timeout, because it would also end the watch of the Lease.
	c.Election, errs[3] = kubernetes.NewForConfig(apart(lease, "leader-election", 0))
	c.Reviews, errs[4] = kubernetes.NewForConfig(apart(config, "metrics", requestTimeout))
	if err := cmp.Or(errs[:]...); err != nil { // all have the same cause
		return nil, fmt.Errorf("creating clients for %s: %w", config.Host, err)
	}
	return &c, nil
}

// withProtobuf selects protobuf for built-in types, which takes half the bytes and CPU of
// JSON. Custom resources are served only as JSON.
func withProtobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// forInformers makes watches survive a restore of etcd from a backup, and initial lists
// take little memory. It turns compression off, as kube-controller-manager does, because
// within a cluster compressing a list takes longer than sending it.
func forInformers(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(guardWatches)
	config.Wrap(keepStreaming)
	config.DisableCompression = true
	return config
}

// keptConnections is the number of idle connections to an API server that client-go keeps
// (idleConnsPerHost in its package transport).
const keptConnections = 25

// forCalls selects HTTP/1.1 for a small number of workers, so that each has its own
// connection. A call is then one write and one read, while HTTP/2 sends headers and body
// separately and through another goroutine, which costs 7% more of the controller's CPU.
// Only watches profit from HTTP/2, whose pings detect a dead connection; calls have deadlines
// for that. More workers than client-go keeps connections would keep opening new ones, so
// they share one HTTP/2 connection, which is client-go's default.
//
// If the API server responds with Retry-After, the call fails, so that the key waits and not
// the worker.
func forCalls(config *rest.Config, workers int) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(handOverRetryAfter)
	if workers <= keptConnections {
		config.NextProtos = []string{"http/1.1"}
	}
	return config
}

// apart returns a configuration for a client with its own connection. Its calls have a
// timeout unless that is 0. The user agent names the purpose.
func apart(config *rest.Config, purpose string, timeout time.Duration) *rest.Config {
	config = rest.AddUserAgent(withProtobuf(config), purpose)
	config.Timeout = timeout
	// client-go shares connections between equal configurations. The dialer makes this one
	// different from all others.
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return config
}

const retryAfter = "Retry-After"

// handOverRetryAfter passes the Retry-After of a response on to the caller: it moves the
// header into the response's body, a Status.
//
// When the API server answers 429 or 5xx with that header, client-go sleeps within the
// call and retries it, up to ten times. This blocks the worker just when the server is
// busy. With this transport the call fails at once, with an error from which
// apierrors.SuggestsClientDelay reads the seconds, and the key waits in the work queue.
//
// It is a transport.WrapperFunc, for rest.Config.Wrap.
func handOverRetryAfter(next http.RoundTripper) http.RoundTripper {
	return roundTripFunc(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
			return response, err
		}
		// Like client-go, ignore a date.
		seconds, err := strconv.ParseInt(response.Header.Get(retryAfter), 10, 32)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // then it is the largest number
			return response, nil // client-go does not wait without seconds
		}
		response.Header.Del(retryAfter)
		if mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); mediaType == runtime.ContentTypeProtobuf {
			return response, nil // the API server's Status also has the seconds
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, statusLimit))
		response.Body.Close()
		if err != nil {
			return nil, err
		}
		body, err = json.Marshal(statusOf(request, response.StatusCode, body, int32(seconds)))
		if err != nil {
			return nil, err
		}
		response.Header.Set("Content-Type", runtime.ContentTypeJSON)
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return response, nil
	})
}

// statusOf returns the Status in a response's body, with the seconds added. Priority and
// Fairness and proxies respond with plain text, which it turns into a Status.
func statusOf(request *http.Request, code int, body []byte, seconds int32) *metav1.Status {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		made := apierrors.NewGenericServerResponse(code, request.Method, schema.GroupResource{}, "", string(bytes.TrimSpace(body)), int(seconds), true)
		made.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		return &made.ErrStatus
	}
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.RetryAfterSeconds = seconds
	return &status
}
