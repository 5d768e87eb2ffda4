// SPDX-License-Identifier: Apache-2.0

// A sequence of steps as a Go test.

package explore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
)

// patience is how many steps of the system a repeated sequence may need to come to rest.
const patience = 10_000

// GoTest returns a test that repeats the sequence.
func (v *Violation) GoTest() string {
	var steps []string
	for _, s := range v.path {
		steps = append(steps, fmt.Sprintf("%d.%d.%d.%d", s.op, s.controller, s.a, s.b))
	}
	return fmt.Sprintf(`func TestCounterexample(t *testing.T) {
	explore.Repeat(t, footest.%sOwner, newExplored, %q, %q)
}`, v.owner, v.world, strings.Join(steps, " "))
}

// Repeat takes the steps of a sequence in a world, as GoTest prints them, and lets the
// system come to rest. It fails if a rule is broken on the way or at rest.
func Repeat(t *testing.T, owner *footest.OwnerRow, create New, world, steps string) {
	t.Helper()
	for _, w := range Large(owner) {
		if w.Name == world {
			if err := repeat(w, create, steps); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("there is no world %q", world)
}

func repeat(w World, create New, steps string) error {
	s, err := newSearch(w, create, Bounds{Workers: 1})
	if err != nil {
		return err
	}
	r, current := s.runners[0], s.first
	for i, text := range strings.Fields(steps) {
		var by step
		if _, err := fmt.Sscanf(text, "%d.%d.%d.%d", &by.op, &by.controller, &by.a, &by.b); err != nil {
			return fmt.Errorf("reading step %d, %q: %w", i+1, text, err)
		}
		if !(explored{current, s.scene}).isPossible(by) {
			return fmt.Errorf("step %d, %q, is not possible any more: the sequence is from another version of the controller or of its world", i+1, text)
		}
		current = r.take(current, by)
		if len(current.violations) > 0 {
			return fmt.Errorf("step %d: %s", i+1, strings.Join(current.violations, "; "))
		}
	}
	current, err = r.rest(current)
	if err != nil {
		return err
	}
	for owner := range r.Owners {
		resync := step{op: opResync, a: uint8(owner)}
		if !(explored{current, s.scene}).isPossible(resync) {
			continue
		}
		current = r.take(current, resync)
		if current, err = r.rest(current); err != nil || current.wrote {
			return fmt.Errorf("at rest, a resync causes a call (%w)", err)
		}
	}
	return nil
}

func (x explored) isPossible(by step) bool {
	return slices.Contains(x.steps(), by)
}

// rest lets the system come to rest, and returns an error if it does not, breaks a rule on
// the way, or rests in a state that is wrong. The state has wrote if there was a call.
func (r *runner) rest(current *state) (*state, error) {
	called := false
	for range patience {
		x := explored{current, r.scene}
		next, ok := x.nextOfSystem()
		if !ok {
			if wrong := x.wrongAtRest(); len(wrong) > 0 {
				return current, fmt.Errorf("at rest: %s", strings.Join(wrong, "; "))
			}
			current = current.clone()
			current.wrote = called
			return current, nil
		}
		current = r.take(current, next)
		called = called || current.wrote
		if len(current.violations) > 0 {
			return current, fmt.Errorf("on the way to rest: %s", strings.Join(current.violations, "; "))
		}
	}
	return current, fmt.Errorf("no rest after %d steps", patience)
}

// nextOfSystem returns the first step of the system.
func (x explored) nextOfSystem() (step, bool) {
	for _, s := range x.steps() {
		if s.bySystem() {
			return s, true
		}
	}
	return step{}, false
}
