// SPDX-License-Identifier: Apache-2.0

// Waiting at start until the informers can list and watch.

package kubeclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
)

// Remedies names what an administrator applies, for the messages of WaitUntilReadable. A message
// leaves out what is empty.
type Remedies struct {
	// CRDs maps an API group to the command that installs its CustomResourceDefinitions.
	CRDs map[string]string
	// Permissions is the manifest that grants the permissions in all namespaces, and
	// NamespacePermissions the one that grants them in one.
	Permissions, NamespacePermissions string
}

// WaitUntilReadable returns when the API server lets this client list and watch the
// resources in a namespace, or in all namespaces, or when ctx is done. If a
// CustomResourceDefinition or a permission is missing, it logs that once and waits, so
// that the parts of an installation can be applied in any order. Without it, informers
// would report the problem repeatedly, and a program that lacks only the permission to watch
// would seem to work. It also waits while the server tells clients to retry later, and for
// outageLimit while it can't be reached. Then, or at once if trying again would not help, it
// returns an error that says what to do.
func (c *Clients) WaitUntilReadable(ctx context.Context, remedies Remedies, namespace string, resources ...schema.GroupVersionResource) error {
	logged := sets.New[string]()
	logOnce := func(kind, message string, keysAndValues ...any) {
		if !logged.Has(kind) {
			logged.Insert(kind)
			klog.FromContext(ctx).Info(message, keysAndValues...)
		}
	}
	for answered := time.Now(); ; {
		wait, unanswered := time.Duration(0), false
		for _, resource := range resources {
			for verb, err := range c.obstacles(ctx, namespace, resource) {
				wait = max(wait, pollPeriod(err))
				passes, explained := explainUnreachable(err, c.host)
				switch {
				case ctx.Err() != nil:
					return nil
				case isWorthWaiting(err):
					logOnce(fmt.Sprint(verb, resource, apierrors.ReasonForError(err)), "Waiting until the informers can list and watch",
						"resource", resource.GroupResource().String(), "cause", remedies.explain(verb, resource, namespace, err))
				case !passes, time.Since(answered) >= outageLimit:
					return explained
				default:
					unanswered = true
					logOnce("outage", "Waiting for the API server", "atMost", outageLimit, "cause", explained.Error())
				}
			}
		}
		if wait == 0 {
			return nil
		}
		if !unanswered {
			answered = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// obstacles yields the verbs, list and watch, that an informer of a resource can't use now,
// with the errors.
func (c *Clients) obstacles(ctx context.Context, namespace string, resource schema.GroupVersionResource) iter.Seq2[string, error] {
	return func(yield func(verb string, err error) bool) {
		err := c.probe(ctx, namespace, resource, "list")
		if err != nil && (!yield("list", err) || !apierrors.IsForbidden(err)) {
			return // a watch would fail in the same way
		}
		// The informers handle any other failure of a watch: they retry.
		if err := c.probe(ctx, namespace, resource, "watch"); apierrors.IsForbidden(err) || isBusy(err) {
			yield("watch", err)
		}
	}
}

// probe calls ask with a timeout. A credential plugin that hangs would make ask exceed it.
func (c *Clients) probe(ctx context.Context, namespace string, resource schema.GroupVersionResource, verb string) error {
	ctx, cancel := context.WithTimeout(ctx, c.requestTimeout)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- c.ask(ctx, namespace, resource, verb) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-answer:
		return err
	case <-time.After(time.Second):
		return errPluginHangs
	}
}

// ask makes a request that requires the same permission as an informer. A list returns one
// object. A watch starts from a version that no API server still knows, so it ends at
// once.
func (c *Clients) ask(ctx context.Context, namespace string, resource schema.GroupVersionResource, verb string) error {
	root := "/apis"
	if resource.Group == "" {
		root = "/api"
	}
	request := c.Kube.Discovery().RESTClient().Get().AbsPath(root, resource.Group, resource.Version).
		NamespaceIfScoped(namespace, namespace != metav1.NamespaceAll).Resource(resource.Resource)
	if verb == "list" {
		return request.Param("limit", "1").Do(ctx).Error()
	}
	body, err := request.Param("watch", "true").Param("resourceVersion", "1").Stream(ctx)
	if err != nil {
		return err
	}
	return body.Close()
}

const (
	// shortestPollPeriod is the time between two attempts if the API server suggests none.
	shortestPollPeriod = 2 * time.Second
	// longestPollPeriod bounds the time that the API server may suggest.
	longestPollPeriod = time.Minute
)

// pollPeriod returns the time to wait after an error: the API server's suggestion, within
// bounds.
func pollPeriod(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(max(time.Duration(seconds)*time.Second, shortestPollPeriod), longestPollPeriod)
}

// isWorthWaiting reports whether someone may resolve an error while the program runs.
func isWorthWaiting(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || isBusy(err)
}

// isBusy reports whether the API server, or a proxy in front of it, tells clients to retry
// later.
func isBusy(err error) bool {
	_, later := apierrors.SuggestsClientDelay(err)
	return later || apierrors.IsTooManyRequests(err)
}

// explain describes what is missing, and what to do about it.
func (r Remedies) explain(verb string, of schema.GroupVersionResource, namespace string, cause error) string {
	resource := of.GroupResource()
	switch {
	case isBusy(cause):
		return fmt.Sprintf("the API server is busy and asks clients to retry later (%v)", cause)
	case apierrors.IsForbidden(cause):
		scope, manifest := "all namespaces", r.Permissions
		if namespace != metav1.NamespaceAll {
			scope, manifest = "the namespace "+namespace, r.NamespacePermissions
		}
		if manifest != "" {
			manifest = ", as " + manifest + " does,"
		}
		return fmt.Sprintf("the permission to %s %s in %s is missing: grant it%s to the identity that the controller runs as (%v)",
			verb, resource, scope, manifest, cause)
	case r.CRDs[resource.Group] != "":
		return fmt.Sprintf("the CustomResourceDefinition %s is not installed: install it with '%s'", resource, r.CRDs[resource.Group])
	}
	return fmt.Sprintf("the API server does not serve %s in version %s: install what provides it", resource, of.Version)
}

// outageLimit bounds the wait for an API server that can't be reached: it is enough for a
// restart of the control plane, and a wrong address is no secret for long.
const outageLimit = 2 * time.Minute

// errPluginHangs means that a request heeds no deadline: it waits for a credential plugin.
var errPluginHangs = errors.New("the credential plugin has not ended")

// explainUnreachable returns an error that says in one line why the API server can't be
// used, and what to check. It also reports whether the problem may pass.
func explainUnreachable(err error, host string) (passes bool, explained error) {
	problem, advice, passes := diagnose(err)
	return passes, fmt.Errorf("the API server at %s %s: %s: %w", host, problem, advice, err)
}

// diagnose returns what is wrong with an API server, what to check, and whether it may pass.
func diagnose(err error) (problem, advice string, passes bool) {
	var connection *net.OpError
	var answer apierrors.APIStatus
	isOp := func(op string) bool { return errors.As(err, &connection) && connection.Op == op }
	const address = "check that it is running and that -kubeconfig or -master names it"
	switch {
	case apierrors.IsUnauthorized(err):
		return "does not accept the credentials", "renew them in the kubeconfig", false
	case errors.As(err, &answer):
		return "can't be reached", address, answer.Status().Code >= http.StatusInternalServerError
	case errors.Is(err, errPluginHangs):
		return "can't be asked without credentials", "run the kubeconfig's credential plugin by hand", true
	case isOfPlugin(err):
		return "can't be asked without credentials", "run the kubeconfig's credential plugin by hand, and repair it", false
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "has a certificate of an unknown authority", "check certificate-authority in the kubeconfig", false
	case errors.As(err, new(x509.HostnameError)):
		return "has a certificate for another name", "check its address, or set tls-server-name in the kubeconfig", false
	case errors.As(err, new(x509.CertificateInvalidError)):
		return "has an invalid certificate", "renew that, or set this machine's clock", false
	case isOp("remote error"): // a TLS alert
		return "ends the TLS handshake", "check client-certificate in the kubeconfig", false
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, new(tls.RecordHeaderError)):
		return "does not use TLS", "check its port, and https:// in its address", false
	case isOp("proxyconnect"):
		return "can't be reached through the proxy", "check proxy-url in the kubeconfig, and HTTPS_PROXY", true
	case errors.As(err, new(*net.DNSError)):
		return "can't be found", "check the host name in -kubeconfig or -master, and the DNS", true
	}
	return "can't be reached", address, true
}

// isOfPlugin reports whether the kubeconfig's credential plugin has failed. client-go keeps
// only the text of that error.
func isOfPlugin(err error) bool {
	var request *url.Error
	return errors.As(err, &request) && strings.HasPrefix(request.Err.Error(), "getting credentials: ")
}
