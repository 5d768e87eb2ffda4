// SPDX-License-Identifier: Apache-2.0

// The reviews that the gate asks the API server for.

package serving

import (
	"context"
	"encoding/json"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

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
