// SPDX-License-Identifier: Apache-2.0

// Tests of the wait at start, and their API server.

package kubeclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// The log names the resource, the verb, the scope and the manifest. It lists all missing
// permissions at once, for whoever grants them. An API server that is busy when the controller
// starts is no reason to exit: the controller polls it as often as it allows.
func TestWaitsForWhatMayStillCome(t *testing.T) {
	proxied := func(code, seconds int) error {
		return apierrors.NewGenericServerResponse(code, "get", gadgetsResource.GroupResource(), "", "", seconds, true)
	}
	busy := func(seconds int) error { return apierrors.NewTooManyRequests("slow down", seconds) }
	slow := apierrors.NewServerTimeout(gadgetsResource.GroupResource(), "list", 0)
	later := []string{"asks clients to retry later"}
	for name, row := range map[string]struct {
		answers answers
		tries   int // in the first 10 minutes
		says    []string
	}{
		"no CustomResourceDefinition": {
			answers{listGadgets: apierrors.NewNotFound(gadgetsResource.GroupResource(), "")}, 300,
			[]string{
				`resource="gadgets.example.com"`,
				"the CustomResourceDefinition gadgets.example.com is not installed", "install it with 'kubectl apply -f crd.yaml'",
			},
		},
		"a version that is not served": {
			answers{listReplicaSets: apierrors.NewNotFound(replicaSetsResource.GroupResource(), "")}, 300,
			[]string{"the API server does not serve replicasets.apps in version v1"},
		},
		"no permission to list Gadgets": {
			answers{listGadgets: forbidden}, 300,
			[]string{
				"the permission to list gadgets.example.com in the namespace team-a is missing",
				"grant it, as role.yaml does, to the identity", "RBAC says no",
			},
		},
		"no permission to watch Gadgets": {answers{watchGadgets: forbidden}, 300, []string{"to watch gadgets.example.com in"}},
		"no permission at all": {
			answers{listGadgets: forbidden, watchGadgets: forbidden, listReplicaSets: forbidden, watchReplicaSets: forbidden},
			300,
			[]string{"to list gadgets", "to watch gadgets", "to list replicasets.apps", "to watch replicasets.apps"},
		},
		"too many requests":                 {answers{listGadgets: busy(10)}, 60, later},
		"too many requests, without a time": {answers{listGadgets: apierrors.NewTooManyRequestsError("slow down")}, 300, later},
		"too many watches":                  {answers{watchGadgets: busy(10)}, 60, later},
		"unavailable":                       {answers{listGadgets: proxied(http.StatusServiceUnavailable, 30)}, 20, later},
		"a timeout of the server":           {answers{listGadgets: apierrors.NewTimeoutError("slow storage", 10)}, 60, later},
		"a server timeout":                  {answers{listGadgets: slow}, 300, later},
		"for a day":                         {answers{listGadgets: busy(86400)}, 10, later},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fakeServer) {
				f.answer(row.answers)
				done := make(chan error, 1)
				go func() { done <- f.wait(f.ctx) }()
				advance(10*time.Minute - time.Second)
				if tries := f.count(listGadgets); len(done) > 0 || tries != row.tries {
					t.Fatalf("there were %d tries in 10 minutes, not %d", tries, row.tries)
				}
				f.answer(nil)
				must(t, <-done)
				said := f.log.String()
				for _, want := range row.says {
					if !strings.Contains(said, want) {
						t.Errorf("the log does not say %q:\n%s", want, said)
					}
				}
				if strings.Count(said, "Waiting until") != len(row.answers) {
					t.Errorf("the log does not say once for each what the controller waits for:\n%s", said)
				}
			})
		})
	}
	if got := (Remedies{}).explain("list", gadgetsResource, "", forbidden); !strings.Contains(got, "in all namespaces is missing: grant it to the identity") {
		t.Errorf("without a remedy the message is %q", got)
	}
}

// If one cause follows another, both are logged. A stop is no error.
func TestEachCauseOfWaitingIsLoggedUntilAStop(t *testing.T) {
	run(t, func(t *testing.T, f *fakeServer) {
		ctx, stop := context.WithCancel(f.ctx)
		f.answer(answers{listGadgets: apierrors.NewTooManyRequests("slow down", 10)})
		time.AfterFunc(time.Minute, func() {
			f.answer(answers{listGadgets: apierrors.NewNotFound(gadgetsResource.GroupResource(), "")})
		})
		time.AfterFunc(2*time.Minute, stop)
		must(t, f.wait(ctx))
		if said := f.log.String(); strings.Count(said, "asks clients to retry later") != 1 || strings.Count(said, "is not installed") != 1 {
			t.Errorf("the log does not say once for each cause what the controller waits for:\n%s", said)
		}
	})
}

// Once nothing is missing, the polling ends. A watch that ends, or fails in another way, shows
// that it is allowed, or that the informers have to retry.
func TestWithoutAnObstacleEachResourceIsProbedOnce(t *testing.T) {
	for name, answer := range map[string]error{
		"nothing wrong":       nil,
		"the version is gone": apierrors.NewResourceExpired("too old"),
		"a broken connection": errors.New("connection reset"),
		"an internal error":   apierrors.NewInternalError(errors.New("etcd")),
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fakeServer) {
				f.answer(answers{watchGadgets: answer})
				must(t, f.wait(f.ctx))
				services := corev1.SchemeGroupVersion.WithResource("services")
				must(t, f.clients.WaitUntilReadable(f.ctx, remedies, "", gadgetsResource, services)) // of all namespaces
				advance(time.Hour)
				want := []string{
					listGadgets, watchGadgets, listReplicaSets, watchReplicaSets,
					"list /apis/example.com/v1/gadgets", "watch /apis/example.com/v1/gadgets",
					"list /api/v1/services", "watch /api/v1/services",
				}
				if !slices.Equal(f.requests, want) {
					t.Errorf("the requests are %v, not %v", f.requests, want)
				}
			})
		})
	}
}

// What may pass is waited for, with a line in the log at once. All else is an error at once.
// Both say what to check.
func TestAServerThatCannotBeUsedIsAnErrorThatSaysWhatToCheck(t *testing.T) {
	failed := func(op string, cause error) error { return &net.OpError{Op: op, Net: "tcp", Err: cause} }
	answers502 := apierrors.NewGenericServerResponse(http.StatusBadGateway, "get", gadgetsResource.GroupResource(), "", "", 0, true)
	const atOnce, limited = 0, outageLimit
	for name, row := range map[string]struct {
		failure error
		waits   time.Duration
		want    string
	}{
		"refused":                {failed("dial", syscall.ECONNREFUSED), limited, "check that it is running and that -kubeconfig or -master names it"},
		"a bad gateway":          {answers502, limited, "check that it is running"},
		"out of order":           {apierrors.NewInternalError(errors.New("etcd")), limited, "check that it is running"},
		"slow":                   {context.DeadlineExceeded, limited, "check that it is running"},
		"no such host":           {failed("dial", &net.DNSError{Err: "no such host"}), limited, "the DNS"},
		"no proxy":               {failed("proxyconnect", syscall.ECONNREFUSED), limited, "check proxy-url"},
		"a plugin that hangs":    {errPluginHangs, limited, "run the kubeconfig's credential plugin by hand"},
		"a plugin that fails":    {errors.New("getting credentials: exec: executable aws failed with exit code 1"), atOnce, "credential plugin"},
		"bad credentials":        {apierrors.NewUnauthorized("no"), atOnce, "does not accept the credentials"},
		"another kind of server": {apierrors.NewBadRequest("no"), atOnce, "-kubeconfig or -master"},
		"an unknown authority":   {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, atOnce, "check certificate-authority"},
		"another's certificate":  {x509.HostnameError{Certificate: &x509.Certificate{}}, atOnce, "tls-server-name"},
		"an expired certificate": {x509.CertificateInvalidError{Reason: x509.Expired}, atOnce, "this machine's clock"},
		"a client's certificate": {failed("remote error", errors.New("tls: certificate required")), atOnce, "check client-certificate"},
		"HTTP":                   {tls.RecordHeaderError{Msg: "no TLS"}, atOnce, "check its port"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fakeServer) {
				f.answer(answers{listReplicaSets: row.failure})
				began := time.Now()
				said := fmt.Sprint(f.wait(f.ctx))
				if !strings.Contains(said, row.want) || !strings.Contains(said, "https://cluster") || !strings.Contains(said, row.failure.Error()) {
					t.Errorf("the message %q does not say %q, the server and the cause", said, row.want)
				}
				if waited := time.Since(began); waited < row.waits || waited > row.waits+shortestPollPeriod {
					t.Errorf("it waited for %v, not %v", waited, row.waits)
				}
				if lines := strings.Count(f.log.String(), row.want); lines != min(1, int(row.waits)) {
					t.Errorf("the log says %d times what it waits for:\n%s", lines, f.log.String())
				}
			})
		})
	}
}

// The limit counts from the last answer.
func TestAServerThatAnswersInTimeIsUsed(t *testing.T) {
	run(t, func(t *testing.T, f *fakeServer) {
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		f.answer(answers{listGadgets: refused, listReplicaSets: refused})
		time.AfterFunc(100*time.Second, func() { f.answer(answers{listGadgets: forbidden}) })
		time.AfterFunc(150*time.Second, func() { f.answer(answers{listReplicaSets: refused}) })
		time.AfterFunc(250*time.Second, func() { f.answer(nil) })
		must(t, f.wait(f.ctx))
	})
}

// client-go gives a plugin no deadline, and a request waits for it whatever its own.
func TestAPluginThatHangsDelaysNoStop(t *testing.T) {
	run(t, func(t *testing.T, f *fakeServer) {
		ctx, stop := context.WithTimeout(f.ctx, time.Minute)
		defer stop()
		f.hangs = make(chan struct{})
		defer close(f.hangs)
		began := time.Now()
		must(t, f.wait(ctx))
		if took := time.Since(began); took > time.Minute+time.Second || !strings.Contains(f.log.String(), "credential plugin") {
			t.Errorf("it ended after %v, and the log is:\n%s", took, f.log.String())
		}
	})
}

var (
	gadgetsResource     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	replicaSetsResource = appsv1.SchemeGroupVersion.WithResource("replicasets")
)

var remedies = Remedies{CRDs: map[string]string{"example.com": "kubectl apply -f crd.yaml"}, NamespacePermissions: "role.yaml"}

const (
	gadgetsPath      = "/apis/example.com/v1/namespaces/team-a/gadgets"
	listGadgets      = "list " + gadgetsPath
	watchGadgets     = "watch " + gadgetsPath
	listReplicaSets  = "list /apis/apps/v1/namespaces/team-a/replicasets"
	watchReplicaSets = "watch /apis/apps/v1/namespaces/team-a/replicasets"
)

var forbidden = apierrors.NewForbidden(gadgetsResource.GroupResource(), "", errors.New("RBAC says no"))

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// advance moves the bubble's clock forward, then waits until every goroutine is idle.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// answers maps a verb and path, such as "list /apis/...", to an error.
type answers map[string]error

// fakeServer is an API server that can refuse requests. It is a transport, because a
// testing/synctest bubble has no network.
type fakeServer struct {
	t       *testing.T
	ctx     context.Context
	log     ktesting.Buffer
	clients *Clients

	mu       sync.Mutex
	answers  answers
	hangs    chan struct{} // if not nil, all requests wait for it
	closed   int           // how often idle connections were closed
	requests []string
	queries  []string // of the requests
}

// run runs a test in a bubble, with a server that responds to all requests.
func run(t *testing.T, test func(*testing.T, *fakeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
		f := &fakeServer{t: t, ctx: klog.NewContext(t.Context(), logger), log: logger.GetSink().(ktesting.Underlier).GetBuffer()}
		var err error
		f.clients, err = New(&rest.Config{Host: "https://cluster", QPS: -1, Transport: f}, 2, time.Second)
		must(t, err)
		test(t, f)
	})
}

// RoundTrip responds to a list with an empty one, and to a watch by ending it.
func (f *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.hangs != nil {
		<-f.hangs
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	request := "list " + r.URL.Path
	if r.URL.Query().Get("watch") != "" {
		request = "watch " + r.URL.Path
	}
	f.requests = append(f.requests, request)
	f.queries = append(f.queries, r.URL.RawQuery)
	var body any = metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "List", APIVersion: "v1"}}
	code, header := http.StatusOK, http.Header{"Content-Type": {"application/json"}}
	err := f.answers[request]
	var failure apierrors.APIStatus
	switch {
	case errors.As(err, &failure):
		status := failure.Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		code, body = int(status.Code), status
		if details := status.Details; details != nil && details.RetryAfterSeconds > 0 {
			header.Set("Retry-After", fmt.Sprint(details.RetryAfterSeconds))
		}
	case err != nil:
		return nil, err
	}
	text, err := json.Marshal(body)
	must(f.t, err)
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: header, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, nil
}

// CloseIdleConnections is what a client calls that takes them for dead.
func (f *fakeServer) CloseIdleConnections() { f.closed++ }

// answer makes the server respond to some requests with errors, and to all others with success.
func (f *fakeServer) answer(with answers) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = with
}

// count returns how often a request was sent.
func (f *fakeServer) count(request string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(f.requests), func(sent string) bool { return sent != request }))
}

// wait waits for Gadgets and ReplicaSets.
func (f *fakeServer) wait(ctx context.Context) error {
	return f.clients.WaitUntilReadable(ctx, remedies, "team-a", gadgetsResource, replicaSetsResource)
}
