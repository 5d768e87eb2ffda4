// SPDX-License-Identifier: Apache-2.0

// Waiting for conditions that nothing announces.

package testcluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pollPeriod is the period between two checks of a condition.
const pollPeriod = 50 * time.Millisecond

// Await calls check until it returns nil. After the limit, Await returns an error that
// contains what, the condition it waited for, and check's last error.
func Await(ctx context.Context, limit time.Duration, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %v", limit))
	defer cancel()
	ticker := time.NewTicker(pollPeriod)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err // but not the error of the ended context
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w: %w", what, context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

var errSucceeded = errors.New("the request succeeds")

// AwaitAnswer repeats a request until wanted accepts its result. The API server learns of
// new permissions and policies through watches, so it takes a moment to apply them.
func AwaitAnswer(ctx context.Context, limit time.Duration, what string, request func(context.Context) error, wanted func(error) bool) error {
	return Await(ctx, limit, what, func(ctx context.Context) error {
		answer := request(ctx)
		switch {
		case wanted(answer):
			return nil
		case answer == nil:
			return errSucceeded
		}
		return answer
	})
}

// Succeeded makes AwaitAnswer wait for a request without an error.
func Succeeded(err error) bool { return err == nil }
