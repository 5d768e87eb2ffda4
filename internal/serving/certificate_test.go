// SPDX-License-Identifier: Apache-2.0

// Tests of certificates from files, and the authority that signs them.

package serving

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	certutil "k8s.io/client-go/util/cert"
)

// writeCertificate makes a certificate for a host and returns the names of its files.
func writeCertificate(t *testing.T, folder, host string) (certFile, keyFile string) {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	must(t, err)
	certFile, keyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	must(t, os.WriteFile(certFile, certificate, 0o600))
	must(t, os.WriteFile(keyFile, key, 0o600))
	return certFile, keyFile
}

func TestCertificateFilesAreReadAgain(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := writeCertificate(t, folder, "first")
	synctest.Test(t, func(t *testing.T) {
		secure, err := FromFiles(certFile, keyFile)
		must(t, err)
		inNetworkOf(t, secret, secure, func(t *testing.T, n *network) {
			expect := func(after time.Duration, want string) {
				t.Helper()
				<-time.After(after)
				client := tls.Client(n.dial("10.0.0.1"), &tls.Config{InsecureSkipVerify: true})
				defer client.NetConn().Close()
				must(t, client.HandshakeContext(t.Context()))
				if host := client.ConnectionState().PeerCertificates[0].DNSNames[0]; host != want {
					t.Errorf("The certificate is for %q, want %q", host, want)
				}
			}
			expect(0, "first")
			writeCertificate(t, folder, "second")
			expect(rereadAfter-1, "first")
			expect(1, "second")
			must(t, os.WriteFile(certFile, []byte("garbage"), 0o600)) // an unusable one does not replace it
			expect(rereadAfter, "second")
			writeCertificate(t, folder, "third")
			expect(rereadAfter, "third")
		})
	})
}

// authority is an API server that knows three tokens: two of the user "prometheus", who
// may get /metrics, and one of "visitor", who has no permission.
type authority struct {
	client *fake.Clientset
	// knowsAll is true if each other token is that of a user without permission.
	knowsAll bool
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
	none := func() error { return nil }
	a := &authority{client: fake.NewClientset(), tokenFault: none, accessFault: none}
	users := map[string]string{"p": "prometheus", "p2": "prometheus", "v": "visitor"}
	a.client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a.tokenReviews.Add(1)
		if err := a.tokenFault(); err != nil {
			return true, nil, err
		}
		review := created[*authenticationv1.TokenReview](action)
		name := users[review.Spec.Token]
		if name == "" && a.knowsAll {
			name = review.Spec.Token
		}
		if name == "" {
			review.Status.Error = "invalid bearer token"
			return true, review, nil
		}
		review.Status.Authenticated = true
		review.Status.User = authenticationv1.UserInfo{
			Username: name, UID: name + "-uid", Groups: []string{"people"},
			Extra: map[string]authenticationv1.ExtraValue{"pod": {name + "-0"}},
		}
		return true, review, nil
	})
	a.client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a.accessReviews.Add(1)
		if err := a.accessFault(); err != nil {
			return true, nil, err
		}
		review := created[*authorizationv1.SubjectAccessReview](action)
		a.lastAccess.Store(review.Spec.DeepCopy())
		review.Status.Allowed = review.Spec.User == "prometheus" && review.Spec.NonResourceAttributes.Verb == "get"
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

// get sends a request with a token, and returns the response.
func get(t *testing.T, handler http.Handler, path, token string) *httptest.ResponseRecorder {
	t.Helper()
	return send(handler, request(t, http.MethodGet, path, token))
}

// request returns a request with a token.
func request(t *testing.T, method, path, token string) *http.Request {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	request.Header.Set("Authorization", "Bearer "+token)
	return request
}

func send(handler http.Handler, request *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

// secret is the handler that the gate guards.
var secret = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("the secret"))
})
