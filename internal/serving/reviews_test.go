// SPDX-License-Identifier: Apache-2.0

// Tests of a review that gets no answer.

package serving

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAHangingReviewTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := review(t.Context(), func(ctx context.Context, _ *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, &authenticationv1.TokenReview{})
		if !errors.Is(err, errReviewFailed) {
			t.Errorf("Got %v, want %v", err, errReviewFailed)
		}
		if took := time.Since(start); took != reviewTimeout {
			t.Errorf("The review took %v, want %v", took, reviewTimeout)
		}
	})
}
