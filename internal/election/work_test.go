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

package election

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWorkThatDoesNotEndIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		late := errors.New("too late")
		a := competeWith(t, s, "a", func(context.Context, context.Context) error {
			<-time.After(time.Minute)
			return late
		})
		a.leadsBetween(t, 0, time.Second)
		s.seize(t, "b")
		if err := a.ends(t, 13*time.Second); !errors.Is(err, ErrLost) || errors.Is(err, late) || a.drained.Load() {
			t.Errorf("a ended with %v, its work ended: %v", err, a.drained.Load())
		}
		advance(time.Minute) // with the race detector: what comes late is written where nobody reads
		if !a.drained.Load() {
			t.Error("the work hangs, because nobody takes its result")
		}
	})
}

func TestWorkThatEndsByItselfEndsTheElection(t *testing.T) {
	for name, result := range map[string]error{"as it should": nil, "with an error": errors.New("no more work")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				a := competeWith(t, s, "a", func(context.Context, context.Context) error { return result })
				if err := a.ends(t, time.Second); !errors.Is(err, result) || s.holder(t) != "" {
					t.Errorf("a ended with %v, and %q has the Lease", err, s.holder(t))
				}
			})
		})
	}
}

func TestWorkThatFailsWhenTheLeaseIsLostSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		failed := errors.New("cut off")
		a := competeWith(t, s, "a", func(_, held context.Context) error {
			<-held.Done()
			return failed
		})
		a.leadsBetween(t, 0, time.Second)
		s.seize(t, "b")
		if err := a.ends(t, 13*time.Second); !errors.Is(err, ErrLost) || !errors.Is(err, failed) {
			t.Errorf("a ended with %v", err)
		}
	})
}
