// SPDX-License-Identifier: Apache-2.0

// A test of callers that share a verdict.

package serving

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Two callers wait for the same verdict, and the first, which caused the review, is
// cancelled.
func TestACancelledCallerDoesNotCancelTheReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		verdicts, answer := newVerdicts[bool](), make(chan struct{})
		ask := func(ctx context.Context) (bool, time.Duration, error) {
			select {
			case <-answer:
				return true, time.Minute, nil
			case <-ctx.Done():
				return false, 0, ctx.Err()
			}
		}
		first, leave := context.WithCancel(t.Context())
		left, stayed := make(chan error), make(chan error)
		go func() {
			_, err := verdicts.get(first, "key", ask)
			left <- err
		}()
		synctest.Wait()
		go func() {
			verdict, err := verdicts.get(t.Context(), "key", ask)
			if err == nil && !verdict {
				err = errors.New("another verdict")
			}
			stayed <- err
		}()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("The cancelled caller gets %v, want %v", err, context.Canceled)
		}
		close(answer)
		if err := <-stayed; err != nil {
			t.Errorf("The other caller gets %v", err)
		}
	})
}
