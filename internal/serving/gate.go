// SPDX-License-Identifier: Apache-2.0

// The gate, which authenticates and authorizes requests with the API server's help.

package serving

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
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
