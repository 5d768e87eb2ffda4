// SPDX-License-Identifier: Apache-2.0

// The API server of the tests, which reviews tokens and accesses.

package serving

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// authority is an API server that knows three tokens: two of the user "prometheus", who
// may get /metrics, and one of "visitor", who has no permission.
type authority struct {
	client *fake.Clientset
	// tokenReviews and accessReviews count the reviews, retries included.
	tokenReviews, accessReviews atomic.Int32
	// lastAccess is the spec of the last SubjectAccessReview.
	lastAccess atomic.Pointer[authorizationv1.SubjectAccessReviewSpec]
	// tokenFault and accessFault are called for each review. If they return an error, it
	// is the answer.
	tokenFault, accessFault func() error
}

var errOutage = errors.New("etcd is on fire")

func newAuthority() *authority {
	a := &authority{client: fake.NewClientset()}
	a.client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a.tokenReviews.Add(1)
		if a.tokenFault != nil {
			if err := a.tokenFault(); err != nil {
				return true, nil, err
			}
		}
		review := created[*authenticationv1.TokenReview](action)
		if name := map[string]string{"p": "prometheus", "p2": "prometheus", "v": "visitor"}[review.Spec.Token]; name != "" {
			review.Status.Authenticated = true
			review.Status.User = authenticationv1.UserInfo{Username: name, UID: name + "-uid", Groups: []string{"people"},
				Extra: map[string]authenticationv1.ExtraValue{"pod": {name + "-0"}}}
		} else {
			review.Status.Error = "invalid bearer token"
		}
		return true, review, nil
	})
	a.client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a.accessReviews.Add(1)
		if a.accessFault != nil {
			if err := a.accessFault(); err != nil {
				return true, nil, err
			}
		}
		review := created[*authorizationv1.SubjectAccessReview](action)
		a.lastAccess.Store(review.Spec.DeepCopy())
		asked := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && asked.Verb == "get"
		return true, review, nil
	})
	return a
}

func created[T runtime.Object](action clienttesting.Action) T {
	return action.(clienttesting.CreateAction).GetObject().DeepCopyObject().(T)
}

// asked returns the numbers of token reviews and access reviews.
func (a *authority) asked() [2]int32 {
	return [2]int32{a.tokenReviews.Load(), a.accessReviews.Load()}
}

// get sends a request with a token and returns the response.
func get(t *testing.T, handler http.Handler, path, token string) *httptest.ResponseRecorder {
	t.Helper()
	return getFrom(t, "192.0.2.1", handler, path, token)
}

// getFrom sends a request from an address.
func getFrom(t *testing.T, address string, handler http.Handler, path, token string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	request.RemoteAddr = net.JoinHostPort(address, "40000")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

// secret is the handler that the gate guards.
var secret = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("the secret"))
})
