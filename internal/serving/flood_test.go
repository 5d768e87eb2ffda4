// SPDX-License-Identifier: Apache-2.0

// Tests of floods of requests, with made-up tokens or without permission.

package serving

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// A flood must not make a scrape fail, even after the scraper's token has been renewed, nor
// make the controller flood the API server.
func TestAFloodHarmsNobody(t *testing.T) {
	const (
		seconds, perSecond = 15 * 60, 50 // longer than any verdict is cached
		bound              = 100 + reviewsAtOnce + reviewsPerSecond*seconds
	)
	for _, test := range []struct {
		what       string
		attackers  int
		authentic  bool   // the tokens are those of users without permission
		scraper    string // its address
		rotated    string // its token in the second half of the flood
		wantRefuse int
	}{
		{"made-up tokens of one Pod", 1, false, "10.1.0.1", "p2", http.StatusUnauthorized},
		{"made-up tokens of 1000 Pods", 1000, false, "10.1.0.1", "p2", http.StatusUnauthorized},
		{"made-up tokens, and a proxy before all clients", 1, false, addressOf(0), "p", http.StatusUnauthorized},
		{"users without permission", 100, true, "10.1.0.1", "p2", http.StatusForbidden},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				authority := newAuthority()
				if test.authentic {
					authority.knowAll()
				}
				handler := NewGate(authority.client).Guard(secret)
				scrapes, floods := map[int]int{}, map[int]int{}
				token := "p"
				for i := range seconds * perSecond {
					answer := getFrom(t, addressOf(i%test.attackers), handler, "/metrics", fmt.Sprintf("token-%d", i))
					floods[answer.Code]++
					if answer.Code == http.StatusTooManyRequests && answer.Header().Get("Retry-After") == "" {
						t.Fatal("429 without Retry-After")
					}
					if i == seconds*perSecond/2 {
						token = test.rotated
					}
					if i%(30*perSecond) == 0 { // right after another has taken what there was
						scrapes[getFrom(t, test.scraper, handler, "/metrics", token).Code]++
					}
					<-time.After(time.Second / perSecond)
				}
				if scrapes[http.StatusOK] != seconds/30 {
					t.Errorf("The scraper gets %v, want %d only", scrapes, http.StatusOK)
				}
				if floods[test.wantRefuse]+floods[http.StatusTooManyRequests] != seconds*perSecond || floods[test.wantRefuse] == 0 {
					t.Errorf("The others get %v, want %d within the budget, and %d", floods, test.wantRefuse, http.StatusTooManyRequests)
				}
				if got := authority.asked(); got[0]+got[1] > bound {
					t.Errorf("The flood caused %v reviews, want at most %d", got, bound)
				}
			})
		})
	}
}

// knowAll lets the authority know each token of more than two letters: it is of the user of
// that name.
func (a *authority) knowAll() {
	a.client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := created[*authenticationv1.TokenReview](action)
		if len(review.Spec.Token) < 3 {
			return false, nil, nil
		}
		a.tokenReviews.Add(1)
		review.Status.Authenticated = true
		review.Status.User.Username = review.Spec.Token
		return true, review, nil
	})
}
