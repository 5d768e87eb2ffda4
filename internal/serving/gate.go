// SPDX-License-Identifier: Apache-2.0

// The gate, which authenticates and authorizes requests with the API server's help, and
// remembers its answers for a short time.

package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

var (
	errNoToken = errors.New("the request has no bearer token: send one in the Authorization header")
	// errInvalidToken means that the API server rejected the token.
	errInvalidToken = errors.New("the API server does not accept the token")
	// errReviewFailed means that the API server did not answer. The cause has been
	// logged.
	errReviewFailed = errors.New("asking the API server failed; the controller's log says why")
	// errTooManyReviews means that the budget of reviews is used up, so the API server
	// was not asked.
	errTooManyReviews = errors.New("too many requests with unknown tokens")
)

// Gate lets an HTTP request through if the API server accepts its bearer token
// (TokenReview) and allows its user the method on the path (SubjectAccessReview). It
// ignores everything else in the request, such as client certificates and headers that
// name another user.
//
// Anybody who can connect can send tokens, valid or not. So the gate caches positive and
// negative verdicts, requests with the same token share one review, and the rate of
// reviews is bounded, with a share for each caller (reviewBudget). Beyond its share, a
// caller gets 429 at once.
//
// k8s.io/apiserver has authenticatorfactory and authorizerfactory for this purpose. They
// import CEL, gRPC and the exporters of OpenTelemetry: the controller would have 65 MiB
// instead of 30, and take 42 MiB of memory at start instead of 23. The packages used here
// add 0.2 MiB. Besides, the token cache there does not know which caller a review is for.
type Gate struct {
	budget *reviewBudget
	tokens *tokenReviews
	access *accessReviews
}

// NewGate returns a gate that makes its reviews with a client. The client needs the
// permission to create tokenreviews and subjectaccessreviews.
func NewGate(client kubernetes.Interface) *Gate {
	budget := newReviewBudget()
	return &Gate{
		budget: budget,
		tokens: &tokenReviews{
			client: client.AuthenticationV1().TokenReviews(), budget: budget, verdicts: newVerdicts[*user.DefaultInfo]()},
		access: &accessReviews{
			client: client.AuthorizationV1().SubjectAccessReviews(), budget: budget, verdicts: newVerdicts[bool]()},
	}
}

// Guard returns a handler that passes allowed requests to handler. It answers others with
// 401 (no token, or an invalid one), 403 (the user lacks the permission), 429 (too many
// reviews) or 500 (the API server did not answer).
func (g *Gate) Guard(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, info, err := g.authenticate(r)
		if err != nil {
			refuse(w, http.StatusUnauthorized, err)
			return
		}
		verb := strings.ToLower(r.Method)
		allowed, err := g.access.allowed(r.Context(), who, info, verb, r.URL.Path)
		if err == nil && !allowed {
			err = missingPermission(info, verb, r.URL.Path)
		}
		if err != nil {
			refuse(w, http.StatusForbidden, err)
			return
		}
		g.budget.remember(who)
		trust(w, r)
		handler.ServeHTTP(w, r)
	})
}

// authenticate returns the caller and the user of a request. It removes the token from
// the request.
func (g *Gate) authenticate(r *http.Request) (who caller, info user.Info, err error) {
	token := authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		who = callerOf(token, r.RemoteAddr)
		bearer, err := g.tokens.bearer(ctx, who, token)
		switch {
		case err != nil:
			return nil, false, err
		case bearer == nil:
			return nil, false, errInvalidToken
		}
		return &authenticator.Response{User: bearer}, true, nil
	})
	response, ok, err := bearertoken.New(token).AuthenticateRequest(r)
	switch {
	case err != nil:
		return who, nil, err
	case !ok:
		return who, nil, errNoToken
	}
	return who, response.User, nil
}

// refuse answers with an error. The code is status if the API server gave a verdict, else
// 429 or 500.
func refuse(w http.ResponseWriter, status int, err error) {
	switch {
	case errors.Is(err, errTooManyReviews):
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", "10")
	case errors.Is(err, errReviewFailed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		status = http.StatusInternalServerError
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, fmt.Sprintf("%s: %v", http.StatusText(status), err), status)
}

// missingPermission returns an error that says what to ask an administrator for.
func missingPermission(who user.Info, verb, path string) error {
	return fmt.Errorf("%q lacks the permission to %s %s: bind it to a ClusterRole with nonResourceURLs: [%q] and verbs: [%q]",
		who.GetName(), verb, path, path, verb)
}

// maxVerdicts is more than the users and paths of a controller, and more than the made-up
// tokens that can be reviewed before their verdicts expire.
const maxVerdicts = 1000

// verdicts caches verdicts of the API server, and asks it once for all callers that wait
// for the same verdict.
type verdicts[T any] struct {
	remembered *cache.LRUExpireCache
	underWay   singleflight.Group
}

func newVerdicts[T any]() *verdicts[T] {
	return &verdicts[T]{remembered: cache.NewLRUExpireCache(maxVerdicts)}
}

// get returns the cached verdict of a key, or else calls ask, which returns the verdict
// and how long to cache it. Errors are not cached. If the caller's ctx ends, ask
// continues, because other callers may wait for it.
func (v *verdicts[T]) get(ctx context.Context, key string, ask func(context.Context) (T, time.Duration, error)) (T, error) {
	detached := context.WithoutCancel(ctx)
	answer := v.underWay.DoChan(key, func() (any, error) {
		if verdict, ok := v.remembered.Get(key); ok {
			return verdict, nil
		}
		verdict, ttl, err := ask(detached)
		if err == nil {
			v.remembered.Add(key, verdict, ttl)
		}
		return verdict, err
	})
	select {
	case result := <-answer:
		return result.Val.(T), result.Err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

const (
	// tokenTTL is how long a verdict on a token is cached, positive or negative. A
	// revoked token remains valid here for that long.
	tokenTTL = time.Minute
	// How long a verdict on a permission is cached: shorter if it is negative, so that a
	// permission that was just granted takes effect soon.
	allowedTTL = 5 * time.Minute
	deniedTTL  = 30 * time.Second

	// reviewTimeout bounds a review with all its attempts. Two reviews fit into the 10
	// seconds that Prometheus allows a scrape.
	reviewTimeout = 4 * time.Second
)

// tokenReviews asks the API server which user a token belongs to.
type tokenReviews struct {
	client   typedauthenticationv1.TokenReviewInterface
	budget   *reviewBudget
	verdicts *verdicts[*user.DefaultInfo]
}

// bearer returns the user of a token, or nil if the API server does not accept the token.
// The review names no audience, so the token must be for the API server itself.
func (t *tokenReviews) bearer(ctx context.Context, who caller, token string) (*user.DefaultInfo, error) {
	return t.verdicts.get(ctx, string(who.token[:]), func(ctx context.Context) (*user.DefaultInfo, time.Duration, error) {
		if !t.budget.take(who) {
			return nil, 0, errTooManyReviews
		}
		result, err := review(ctx, t.client.Create, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token},
		})
		if err != nil || !result.Status.Authenticated {
			return nil, tokenTTL, err
		}
		info := &user.DefaultInfo{
			Name:   result.Status.User.Username,
			UID:    result.Status.User.UID,
			Groups: result.Status.User.Groups,
			Extra:  map[string][]string{},
		}
		for key, values := range result.Status.User.Extra {
			info.Extra[key] = values
		}
		return info, tokenTTL, nil
	})
}

// accessReviews asks the API server what a user may do.
type accessReviews struct {
	client typedauthorizationv1.SubjectAccessReviewInterface
	budget *reviewBudget
	// The key of a verdict is the review's spec, as JSON.
	verdicts *verdicts[bool]
}

// allowed reports whether a user may do verb on a nonresource path. The review counts
// towards the budget of the caller.
func (a *accessReviews) allowed(ctx context.Context, who caller, info user.Info, verb, path string) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:                  info.GetName(),
		UID:                   info.GetUID(),
		Groups:                info.GetGroups(),
		Extra:                 map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}
	for key, values := range info.GetExtra() {
		spec.Extra[key] = values
	}
	key, err := json.Marshal(spec)
	if err != nil {
		return false, err
	}
	return a.verdicts.get(ctx, string(key), func(ctx context.Context) (bool, time.Duration, error) {
		if !a.budget.take(who) {
			return false, 0, errTooManyReviews
		}
		result, err := review(ctx, a.client.Create, &authorizationv1.SubjectAccessReview{Spec: spec})
		if err != nil {
			return false, 0, err
		}
		if result.Status.Allowed && !result.Status.Denied {
			return true, allowedTTL, nil
		}
		return false, deniedTTL, nil
	})
}

// review asks the API server, and retries after a transient failure. It logs why it
// failed, once for each review, because any number of requests may share one.
func review[T any](ctx context.Context, create func(context.Context, T, metav1.CreateOptions) (T, error), request T) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	var result T
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3}
	err := retry.OnError(backoff, isTransient, func() (err error) {
		result, err = create(ctx, request, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Asking the API server who may get the metrics failed")
		return result, errReviewFailed
	}
	return result, nil
}

// isTransient reports whether a call that failed should be retried.
func isTransient(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		utilnet.IsConnectionReset(err) || utilnet.IsConnectionRefused(err) || utilnet.IsProbableEOF(err)
}
