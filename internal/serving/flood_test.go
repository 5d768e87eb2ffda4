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

// addresses returns a number of different addresses.
func addresses(count int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250)
	}
	return list
}

// A flood of made-up tokens, however long, must not make a scrape fail.
func TestMadeUpTokensDoNotKeepAScraperOut(t *testing.T) {
	const (
		interval  = 30 * time.Second
		duration  = 15 * time.Minute // longer than any verdict is cached
		perSecond = 50
	)
	tests := []struct {
		what      string
		scraper   string
		attackers []string
		// before is true if the scraper was let in before the flood.
		before bool
		// rotated is the scraper's token in the second half of the flood.
		rotated string
	}{
		{"one Pod", "10.1.0.1", addresses(1), false, "p2"},
		{"50 Pods", "10.1.0.1", addresses(50), false, "p2"},
		{"1000 Pods, before which the scraper came", "10.1.0.1", addresses(1000), true, "p2"},
		{"neighbours in a /64, before which the scraper came", "2001:db8::a:1", []string{"2001:db8::1", "2001:db8::2"}, true, "p2"},
		{"a proxy before all clients", "10.1.0.1", []string{"10.1.0.1"}, true, "p"},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				authority := newAuthority()
				handler := NewGate(authority.client).Guard(secret)
				codes := map[int]int{}
				token := "p"
				if test.before {
					codes[getFrom(t, test.scraper, handler, "/metrics", token).Code]++
				}
				requests := int(duration.Seconds()) * perSecond
				scrape := int(interval.Seconds()) * perSecond
				for i := range requests {
					made := fmt.Sprintf("made-up-%d", i)
					if code := getFrom(t, test.attackers[i%len(test.attackers)], handler, "/metrics", made).Code; code == http.StatusOK {
						t.Fatalf("%s is let in", made)
					}
					if i >= requests/2 {
						token = test.rotated
					}
					if i%scrape == scrape/2 {
						codes[getFrom(t, test.scraper, handler, "/metrics", token).Code]++
					}
					<-time.After(time.Second / time.Duration(perSecond))
				}
				if len(codes) != 1 || codes[http.StatusOK] < 30 {
					t.Errorf("The scraper gets %v, want %d only", codes, http.StatusOK)
				}
				// The scraper's own reviews, and those that the attackers can cause.
				if got, bound := int(authority.tokenReviews.Load()), 40+reviewsAtOnce+reviewsPerSecond*int(duration.Seconds()); got > bound {
					t.Errorf("The flood caused %d reviews, want at most %d", got, bound)
				}
			})
		})
	}
}

// A caller with made-up tokens must not make the controller flood the API server.
func TestMadeUpTokensCostABoundedNumberOfReviews(t *testing.T) {
	tests := []struct {
		what      string
		attackers []string
		atMost    int
	}{
		{"one Pod", addresses(1), strangersAtOnce + 1},
		{"hosts with a network each", []string{"2001:db8::1", "2001:db8::2", "2001:db8::ffff:1"}, strangersAtOnce + 1},
		{"500 Pods", addresses(500), reviewsAtOnce + 10*reviewsPerSecond},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				authority := newAuthority()
				handler := NewGate(authority.client).Guard(secret)
				codes := map[int]int{}
				for i := range 10000 { // in 10 seconds
					answer := getFrom(t, test.attackers[i%len(test.attackers)], handler, "/metrics", fmt.Sprintf("made-up-%d", i))
					codes[answer.Code]++
					if answer.Code == http.StatusTooManyRequests && answer.Header().Get("Retry-After") == "" {
						t.Fatal("429 without Retry-After")
					}
					<-time.After(time.Millisecond)
				}
				got := int(authority.tokenReviews.Load())
				if got > test.atMost {
					t.Errorf("10000 made-up tokens in 10 seconds caused %d reviews, want at most %d", got, test.atMost)
				}
				if codes[http.StatusUnauthorized] != got || codes[http.StatusUnauthorized]+codes[http.StatusTooManyRequests] != 10000 {
					t.Errorf("The codes are %v, want 401 for each review and 429 for the rest", codes)
				}
			})
		})
	}
}

// The API server knows these users, but there may be many of them.
func TestUsersWithoutPermissionDoNotKeepAScraperOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority := newAuthority()
		authority.client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
			review := created[*authenticationv1.TokenReview](action)
			if len(review.Spec.Token) < 3 {
				return false, nil, nil
			}
			review.Status.Authenticated = true
			review.Status.User.Username = review.Spec.Token
			return true, review, nil
		})
		handler := NewGate(authority.client).Guard(secret)
		pods, codes := addresses(100), map[int]int{}
		codes[getFrom(t, "10.1.0.1", handler, "/metrics", "p").Code]++
		for i := range 15 * 60 * 100 {
			getFrom(t, pods[i%len(pods)], handler, "/metrics", fmt.Sprintf("user-%d", i%5000))
			if i%3000 == 1500 {
				codes[getFrom(t, "10.1.0.1", handler, "/metrics", "p").Code]++
			}
			<-time.After(10 * time.Millisecond)
		}
		if len(codes) != 1 || codes[http.StatusOK] != 31 {
			t.Errorf("The scraper gets %v, want %d only", codes, http.StatusOK)
		}
		if got, bound := int(authority.accessReviews.Load()), 10+reviewsAtOnce+15*60*reviewsPerSecond; got > bound {
			t.Errorf("The users caused %d access reviews, want at most %d", got, bound)
		}
	})
}

// The memory that a flood leaves behind must not grow with it.
func TestAFloodLeavesBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(newAuthority().client)
		handler := gate.Guard(secret)
		for i, address := range addresses(10 * maxRemembered) {
			getFrom(t, address, handler, "/metrics", fmt.Sprintf("made-up-%d", i))
			<-time.After(10 * time.Millisecond)
		}
		for what, keys := range map[string][]any{
			"shares":   gate.budget.ofStrangers.limiters.Keys(),
			"callers":  gate.budget.passed.members.Keys(),
			"verdicts": gate.tokens.verdicts.remembered.Keys(),
		} {
			if len(keys) > maxRemembered {
				t.Errorf("%d %s are kept", len(keys), what)
			}
		}
	})
}
