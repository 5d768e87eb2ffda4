/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package testcluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pollPeriod is how often a condition is checked that nothing announces.
const pollPeriod = 50 * time.Millisecond

// Await checks a condition until check has no objection. Where that takes longer than the limit, the error has the last objection; what
// says what was waited for.
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
			last = err // and not that the time is over
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w: %w", what, context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

var errSucceeded = errors.New("the request succeeds")

// AwaitAnswer repeats a request until its answer is as wanted: the API server learns of permissions and policies by watches.
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

// Succeeded is an answer that AwaitAnswer may want.
func Succeeded(err error) bool { return err == nil }
