// SPDX-License-Identifier: Apache-2.0

// Tests of certificates from files, and the authority that signs them.

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	write(t, certFile, certificate)
	write(t, keyFile, key)
	return certFile, keyFile
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// shown returns the host in a server's certificate.
func shown(t *testing.T, server *Server) string {
	t.Helper()
	got, err := fetch(t.Context(), "https://"+server.Address()+"/", &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	return got.tls.PeerCertificates[0].DNSNames[0]
}

func TestCertificateFilesAreReadAgainWhenTheyChange(t *testing.T) {
	// As in a Secret's volume, the files are links into a folder, and an update replaces
	// the folder's link.
	mount := t.TempDir()
	writeCertificate(t, filepath.Join(mount, "v1"), "first")
	writeCertificate(t, filepath.Join(mount, "v2"), "second")
	link(t, "v1", filepath.Join(mount, "..data"))
	certFile, keyFile := filepath.Join(mount, "tls.crt"), filepath.Join(mount, "tls.key")
	link(t, "..data/tls.crt", certFile)
	link(t, "..data/tls.key", keyFile)

	certificate, err := FromFiles(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { certificate.Watch(ctx) })
	server, _ := serve(t, secret, certificate.Config())
	if got := shown(t, server); got != "first" {
		t.Fatalf("The certificate is for %q", got)
	}

	link(t, "v2", filepath.Join(mount, "..new"))
	if err := os.Rename(filepath.Join(mount, "..new"), filepath.Join(mount, "..data")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(mount, "v1")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the second certificate", func() bool { return shown(t, server) == "second" })

	// An unusable certificate does not replace a usable one.
	write(t, filepath.Join(mount, "v2", "tls.crt"), []byte("garbage"))
	writeCertificate(t, filepath.Join(mount, "v2"), "third")
	waitFor(t, "the third certificate", func() bool {
		host := shown(t, server)
		if host != "second" && host != "third" {
			t.Fatalf("The certificate is for %q, want the last usable one", host)
		}
		return host == "third"
	})
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestAnUnusableCertificateIsReportedAtOnce(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := writeCertificate(t, folder, "host")
	_, otherKey := writeCertificate(t, filepath.Join(folder, "other"), "other")
	empty := filepath.Join(folder, "empty")
	write(t, empty, nil)
	missing := filepath.Join(folder, "missing")
	for _, test := range []struct{ what, certFile, keyFile string }{
		{"no certificate", missing, keyFile},
		{"no key", certFile, missing},
		{"an empty file", empty, keyFile},
		{"another certificate's key", certFile, otherKey},
		{"swapped", keyFile, certFile},
	} {
		if _, err := FromFiles(test.certFile, test.keyFile); err == nil || !strings.Contains(err.Error(), test.certFile) {
			t.Errorf("%s: got %v, want an error that names the files", test.what, err)
		}
	}
}

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
