// SPDX-License-Identifier: Apache-2.0

// The gate authenticates and authorizes requests with the API server's help, and caches its
// verdicts for a short time.

package serving

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

// refusal is the response to a request that does not pass the gate.
type refusal struct {
	status  int
	message string
}

// Error implements error.
func (r *refusal) Error() string { return r.message }

var (
	errNoToken      = &refusal{http.StatusUnauthorized, "the request has no bearer token: send one in the Authorization header"}
	errInvalidToken = &refusal{http.StatusUnauthorized, "the API server does not accept the token"}
	// errReviewFailed means that the API server did not respond. The cause has been
	// logged.
	errReviewFailed = &refusal{http.StatusInternalServerError, "asking the API server failed; the controller's log says why"}
	// errTooManyReviews means that the budget of reviews is used up, so the gate did not
	// ask the API server.
	errTooManyReviews = &refusal{http.StatusTooManyRequests, "too many requests with unknown tokens"}
)

// missingPermission describes the permission to request from an administrator.
func missingPermission(user, verb, path string) error {
	const text = "%q lacks the permission to %s %s: bind it to a ClusterRole with nonResourceURLs: [%q] and verbs: [%q]"
	return &refusal{http.StatusForbidden, fmt.Sprintf(text, user, verb, path, path, verb)}
}

// refuse responds to a request that does not pass.
func refuse(w http.ResponseWriter, err error) {
	answer := errReviewFailed // also if the client has disconnected in the meantime
	errors.As(err, &answer)
	switch answer.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "10")
	}
	http.Error(w, http.StatusText(answer.status)+": "+answer.message, answer.status)
}

// Gate lets an HTTP request through if the API server accepts its bearer token
// (TokenReview) and allows its user the method on the path (SubjectAccessReview). It
// ignores everything else in the request, such as client certificates and headers that
// name another user.
//
// Anyone who can connect can send tokens, valid or not. So the gate caches positive and
// negative verdicts, requests with the same token share one review, and the rate of
// reviews is bounded (mayReview). Beyond that, a caller gets 429 at once.
//
// k8s.io/apiserver has authenticatorfactory and authorizerfactory for this purpose. They
// import CEL, gRPC and the exporters of OpenTelemetry: the program would grow from 30 MiB to
// 65, and its memory at start by 19 MiB. Also, their token cache does not know which
// caller a review is for.
type Gate struct {
	client kubernetes.Interface
	// verdicts maps a token's hash to its user, or to nil if the API server does not accept
	// the token. It also maps a review's spec, as JSON, to whether it was allowed.
	verdicts *cache.LRUExpireCache
	underWay singleflight.Group
	// known has the token hashes and the addresses of callers that were recently allowed.
	known *cache.LRUExpireCache
	// ofAddresses limits the reviews for callers that are known only by their address, and
	// strangers the reviews for all others.
	ofAddresses, strangers flowcontrol.PassiveRateLimiter
}

// NewGate returns a gate that makes its reviews with a client. The client needs
// permission to create tokenreviews and subjectaccessreviews.
func NewGate(client kubernetes.Interface) *Gate {
	return &Gate{
		client: client, verdicts: cache.NewLRUExpireCache(maxVerdicts), known: cache.NewLRUExpireCache(maxKnown),
		ofAddresses: flowcontrol.NewTokenBucketPassiveRateLimiter(reviewsPerSecond, reviewsAtOnce),
		strangers:   flowcontrol.NewTokenBucketPassiveRateLimiter(reviewsPerSecond, reviewsAtOnce),
	}
}

// Guard returns a handler that passes allowed requests to handler. It responds to others with
// 401 (no token, or an invalid one), 403 (the user lacks the permission), 429 (too many
// reviews) or 500 (the API server did not respond).
func (g *Gate) Guard(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, user, err := g.authenticate(r)
		if err == nil {
			err = g.authorize(r.Context(), who, user, strings.ToLower(r.Method), r.URL.Path)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		g.known.Add(who.token, nil, knownFor)
		g.known.Add(who.address, nil, knownFor)
		trust(w, r)
		handler.ServeHTTP(w, r)
	})
}

// authenticate returns the caller and the user of a request. It removes the token from
// the request.
func (g *Gate) authenticate(r *http.Request) (who caller, user *authenticationv1.UserInfo, err error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); token == "" || !strings.EqualFold(scheme, "Bearer") {
		return who, nil, errNoToken
	}
	r.Header.Del("Authorization")
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	who = caller{token: sha256.Sum256([]byte(token)), address: host}
	user, err = g.userOf(r.Context(), who, token)
	if err == nil && user == nil {
		err = errInvalidToken
	}
	return who, user, err
}

const (
	// tokenTTL is how long a verdict on a token is cached, positive or negative. A
	// revoked token remains valid here for that long.
	tokenTTL = time.Minute
	// How long a verdict on a permission is cached: for a shorter time if it is negative, so
	// that a newly granted permission takes effect soon.
	allowedTTL = 5 * time.Minute
	deniedTTL  = 30 * time.Second

	// reviewTimeout bounds a review with all its attempts. Two reviews fit into the 10
	// seconds that Prometheus allows for a scrape.
	reviewTimeout = 4 * time.Second
)

// userOf returns the user of a token, or nil if the API server does not accept the token.
// The review names no audience, so the token must be for the API server itself.
func (g *Gate) userOf(ctx context.Context, who caller, token string) (*authenticationv1.UserInfo, error) {
	return verdict(ctx, g, string(who.token[:]), func(ctx context.Context) (*authenticationv1.UserInfo, time.Duration, error) {
		request := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		result, err := review(ctx, g, who, g.client.AuthenticationV1().TokenReviews().Create, request)
		if err != nil || !result.Status.Authenticated {
			return nil, tokenTTL, err
		}
		return &result.Status.User, tokenTTL, nil
	})
}

// authorize returns an error unless a user may use verb on a nonresource path.
func (g *Gate) authorize(ctx context.Context, who caller, user *authenticationv1.UserInfo, verb, path string) error {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:                  user.Username,
		UID:                   user.UID,
		Groups:                user.Groups,
		Extra:                 map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}
	for key, values := range user.Extra {
		spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	key, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	allowed, err := verdict(ctx, g, string(key), func(ctx context.Context) (bool, time.Duration, error) {
		request := &authorizationv1.SubjectAccessReview{Spec: spec}
		result, err := review(ctx, g, who, g.client.AuthorizationV1().SubjectAccessReviews().Create, request)
		if err == nil && result.Status.Allowed && !result.Status.Denied {
			return true, allowedTTL, nil
		}
		return false, deniedTTL, err
	})
	if err == nil && !allowed {
		err = missingPermission(user.Username, verb, path)
	}
	return err
}

const (
	// The rate of reviews of both kinds, each for all strangers together and for all callers
	// that are known by their address. A scraper needs one or two per minute, a reader of
	// profiles a few at once.
	reviewsPerSecond = 10
	reviewsAtOnce    = 20

	// knownFor is how long a caller counts as known after its last allowed request. It is
	// longer than any usual scrape interval.
	knownFor = time.Hour
	// maxKnown exceeds the number of a controller's callers, and takes less than 1 MiB.
	maxKnown = 1000
)

// caller identifies the sender of a request. Only the hash of the token is kept.
type caller struct {
	token   [sha256.Size]byte
	address string
}

// mayReview takes a review from the budget of a caller, and reports whether one was left.
// Anyone can send made-up tokens at any rate, so with a single limit they could lock out the
// scrapers. Therefore a caller that was recently allowed does not share the strangers' limit.
// It is recognized by its token, even behind a proxy that all callers use, and by its
// address, so that it can replace a token that expires. A known token needs no limit: its
// verdicts are cached, and there are few paths.
func (g *Gate) mayReview(who caller) bool {
	if _, known := g.known.Get(who.token); known {
		return true
	}
	if _, known := g.known.Get(who.address); known {
		return g.ofAddresses.TryAccept()
	}
	return g.strangers.TryAccept()
}

// review asks the API server, within the caller's budget, and retries unless it lacks the
// permission to ask. It logs a failure once per review, because any number of requests may
// share one.
func review[T any](
	ctx context.Context, g *Gate, who caller,
	create func(context.Context, T, metav1.CreateOptions) (T, error), request T,
) (result T, err error) {
	if !g.mayReview(who) {
		return result, errTooManyReviews
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3}
	mayPass := func(err error) bool { return ctx.Err() == nil && !apierrors.IsForbidden(err) }
	err = retry.OnError(backoff, mayPass, func() (err error) {
		result, err = create(ctx, request, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Asking the API server who may get the metrics failed")
		return result, errReviewFailed
	}
	return result, nil
}

// maxVerdicts exceeds the number of a controller's users and paths, and the number of made-up
// tokens that can be reviewed before their verdicts expire.
const maxVerdicts = 2000

// verdict returns the cached verdict for a key. If there is none, it calls ask, which returns
// the verdict and how long to cache it, once for all callers that wait for the same verdict.
// Errors are not cached. If the caller's ctx ends, ask continues, because other callers may
// be waiting for it.
func verdict[T any](ctx context.Context, g *Gate, key string, ask func(context.Context) (T, time.Duration, error)) (T, error) {
	detached := context.WithoutCancel(ctx)
	answer := g.underWay.DoChan(key, func() (any, error) {
		if known, ok := g.verdicts.Get(key); ok {
			return known, nil
		}
		made, ttl, err := ask(detached)
		if err == nil {
			g.verdicts.Add(key, made, ttl)
		}
		return made, err
	})
	select {
	case result := <-answer:
		return result.Val.(T), result.Err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
