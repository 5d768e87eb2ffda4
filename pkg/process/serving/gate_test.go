// SPDX-License-Identifier: Apache-2.0

// Tests of which requests pass the gate, and of how often it asks the API server.

package serving

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhichRequestsPassTheGate(t *testing.T) {
	noReviews := apierrors.NewForbidden(authorizationv1.Resource("tokenreviews"), "", errOutage)
	tests := []struct {
		what        string
		header      string
		fault, lost error // instead of a verdict on the token, or on the access
		code        int
		contains    string
		asked       [2]int32
	}{
		{"no token", "", nil, nil, http.StatusUnauthorized, "no bearer token", [2]int32{}},
		{"a password", "Basic cDpw", nil, nil, http.StatusUnauthorized, "no bearer token", [2]int32{}},
		{"an empty token", "Bearer ", nil, nil, http.StatusUnauthorized, "no bearer token", [2]int32{}},
		{"an unknown token", "Bearer x", nil, nil, http.StatusUnauthorized, "does not accept the token", [2]int32{1, 0}},
		{"a user without the permission", "Bearer v", nil, nil, http.StatusForbidden, `"visitor" lacks the permission to get /metrics`, [2]int32{1, 1}},
		{"a user with the permission", "Bearer p", nil, nil, http.StatusOK, "the secret", [2]int32{1, 1}},
		{"no verdict on the token", "Bearer p", errOutage, nil, http.StatusInternalServerError, "asking the API server failed", [2]int32{3, 0}},
		{"no verdict on the access", "Bearer p", nil, errOutage, http.StatusInternalServerError, "asking the API server failed", [2]int32{1, 3}},
		{"no permission to ask", "Bearer p", noReviews, nil, http.StatusInternalServerError, "asking the API server failed", [2]int32{1, 0}},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				authority := newAuthority()
				authority.tokenFault = func() error { return test.fault }
				authority.accessFault = func() error { return test.lost }
				handler := NewGate(authority.client).Guard(secret)
				from := request(t, http.MethodGet, "/metrics", "")
				from.Header.Set("Authorization", test.header)
				answer := send(handler, from)
				if answer.Code != test.code || !strings.Contains(answer.Body.String(), test.contains) || authority.asked() != test.asked {
					t.Errorf("Got %d: %s after %v reviews, want %d: … %s after %v", answer.Code, answer.Body, authority.asked(), test.code, test.contains, test.asked)
				}
				if strings.Contains(answer.Body.String(), errOutage.Error()) {
					t.Errorf("The response discloses an internal error to a stranger: %s", answer.Body)
				}
				if challenge := answer.Header().Get("WWW-Authenticate"); (challenge == "Bearer") != (test.code == http.StatusUnauthorized) {
					t.Errorf("A response of %d has the header WWW-Authenticate: %q", test.code, challenge)
				}
				// A review that failed is not cached.
				test.fault, test.lost = nil, nil
				if code := get(t, handler, "/metrics", "p").Code; code != http.StatusOK {
					t.Errorf("After the outage: got %d, want %d", code, http.StatusOK)
				}
			})
		})
	}
}

func TestOnlyTheTokenIdentifiesTheUser(t *testing.T) {
	authority := newAuthority()
	handler := NewGate(authority.client).Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if header := r.Header.Get("Authorization"); header != "" {
			t.Errorf("The handler got the token %q", header)
		}
	}))
	visit := request(t, http.MethodHead, "/metrics?as=prometheus", "v")
	for _, header := range []string{"Impersonate-User", "X-Remote-User"} {
		visit.Header.Set(header, "prometheus")
	}
	visit.Header.Set("Impersonate-Group", "system:masters")
	if answer := send(handler, visit); answer.Code != http.StatusForbidden {
		t.Errorf("Got %d, want %d", answer.Code, http.StatusForbidden)
	}
	want := &authorizationv1.SubjectAccessReviewSpec{
		User: "visitor", UID: "visitor-uid", Groups: []string{"people"},
		Extra:                 map[string]authorizationv1.ExtraValue{"pod": {"visitor-0"}},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "head"},
	}
	if got := authority.lastAccess.Load(); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("The access review is\n%v\nwant\n%v", got, want)
	}
	if code := get(t, handler, "/metrics", "p").Code; code != http.StatusOK {
		t.Errorf("Got %d", code)
	}
}

// asked holds the numbers of token reviews and access reviews so far.
func TestVerdictsAreCachedForAWhile(t *testing.T) {
	type step struct {
		after time.Duration
		asked [2]int32
	}
	tests := []struct {
		what, token string
		code        int
		steps       []step
	}{
		{"a user with the permission", "p", http.StatusOK, []step{
			{0, [2]int32{1, 1}}, {30 * time.Second, [2]int32{1, 1}}, {31 * time.Second, [2]int32{2, 1}}, {4 * time.Minute, [2]int32{3, 2}},
		}},
		{"a user without the permission", "v", http.StatusForbidden, []step{
			{0, [2]int32{1, 1}}, {29 * time.Second, [2]int32{1, 1}}, {2 * time.Second, [2]int32{1, 2}}, {31 * time.Second, [2]int32{2, 3}},
		}},
		{"an unknown token", "x", http.StatusUnauthorized, []step{
			{0, [2]int32{1, 0}}, {59 * time.Second, [2]int32{1, 0}}, {2 * time.Second, [2]int32{2, 0}},
		}},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				authority := newAuthority()
				handler := NewGate(authority.client).Guard(secret)
				for i, step := range test.steps {
					<-time.After(step.after)
					if code := get(t, handler, "/metrics", test.token).Code; code != test.code {
						t.Errorf("Step %d: got %d, want %d", i, code, test.code)
					}
					if got := authority.asked(); got != step.asked {
						t.Errorf("Step %d: the API server got %v reviews, want %v", i, got, step.asked)
					}
				}
			})
		})
	}
}

// A thousand callers with the same token cause one review, even while it is in progress, and
// even if the caller that caused it disconnects.
func TestCallersWithOneTokenWaitForOneVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, answer, asked := NewGate(nil), make(chan struct{}), 0
		ask := func(ctx context.Context) (bool, time.Duration, error) {
			asked++
			<-answer
			return true, time.Minute, ctx.Err()
		}
		first, leave := context.WithCancel(t.Context())
		errs := make(chan error, 1001)
		go func() { _, err := verdict(first, gate, "token", ask); errs <- err }()
		synctest.Wait()
		for range 1000 {
			go func() { _, err := verdict(t.Context(), gate, "token", ask); errs <- err }()
		}
		synctest.Wait()
		leave()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("The caller that is gone gets %v, want %v", err, context.Canceled)
		}
		close(answer)
		for range 1000 {
			must(t, <-errs)
		}
		if asked != 1 {
			t.Errorf("There were %d reviews, want 1", asked)
		}
	})
}

// Anyone with a token could make up any number of other paths and methods: they cost no review.
func TestMetricsAndProfilesAreServedToAllowedUsers(t *testing.T) {
	for _, profiling := range []bool{false, true} {
		authority := newAuthority()
		handler := MetricsHandler(NewGate(authority.client), secret, profiling)
		expect := func(want int, method, path, token string) {
			t.Helper()
			if code := send(handler, request(t, method, path, token)).Code; code != want {
				t.Errorf("%s %s with token %q: got %d, want %d", method, path, token, code, want)
			}
		}
		served := []string{"/metrics"}
		unknown := []string{"/", "/metrics/", "/metrics/x", "/healthz", "/debug/pprof/made-up"}
		profiles := []string{"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/heap", "/debug/pprof/allocs"}
		if profiling {
			served = append(served, profiles...)
		} else {
			unknown = append(unknown, profiles...)
		}
		for _, path := range unknown {
			expect(http.StatusNotFound, http.MethodGet, path, "p")
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			expect(http.StatusMethodNotAllowed, method, "/metrics", "p")
		}
		if got := authority.asked(); got != [2]int32{} {
			t.Errorf("The API server got %v reviews, want none", got)
		}
		for _, path := range served {
			expect(http.StatusUnauthorized, http.MethodGet, path, "")
			expect(http.StatusForbidden, http.MethodGet, path, "v")
			expect(http.StatusOK, http.MethodGet, path, "p")
			if got := authority.lastAccess.Load().NonResourceAttributes.Path; got != path {
				t.Errorf("For %s the access review was for %s", path, got)
			}
		}
	}
}

func TestAHangingReviewTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := review(t.Context(), NewGate(nil), caller{}, func(ctx context.Context, _ *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, &authenticationv1.TokenReview{})
		if took := time.Since(start); !errors.Is(err, errReviewFailed) || took != reviewTimeout {
			t.Errorf("Got %v after %v, want %v after %v", err, took, errReviewFailed, reviewTimeout)
		}
	})
}
