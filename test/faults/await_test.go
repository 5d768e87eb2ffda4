// SPDX-License-Identifier: Apache-2.0

// Tests of trial.await.

package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestAwaitExtendsItsTimeoutForRolloutsOnly(t *testing.T) {
	for name, row := range map[string]struct {
		err   error
		waits bool
	}{
		"a Deployment that is not rolled out":    {fmt.Errorf("Foo a: %w", errors.Join(errNotRolledOut, errors.New("it is not ready"))), true},
		"a Deployment that differs from its Foo": {errors.New("it has 1 replica"), false},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &trial{timeout: 100 * time.Millisecond}
			began := time.Now()
			err := tr.await(t.Context(), "there is no error", func(context.Context) error {
				if time.Since(began) < 3*tr.timeout {
					return row.err
				}
				return nil
			})
			if waited := err == nil; waited != row.waits {
				t.Errorf("await returns %v", err)
			}
		})
	}
}
