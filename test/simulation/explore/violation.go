// SPDX-License-Identifier: Apache-2.0

// A violation: the shortest sequence of steps to it, told moment by moment, and its repetition.

package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/reconcile/reconciletest/model"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// Violation is a rule that is broken, with a shortest sequence of steps to that.
type Violation struct {
	Rules []string
	// Story tells the steps.
	Story []string

	world string
	path  []step
}

// String tells the story.
func (v *Violation) String() string {
	return fmt.Sprintf("%s\n  %s\n\nto repeat it: go test -run '^TestExplore$' . -args -explore=%q -explore.steps=%q\n",
		strings.Join(v.Rules, "\n"), strings.Join(v.Story, "\n  "), v.world, v.steps())
}

// tell tells the steps by taking them again.
func (v *Violation) tell(s *search) {
	v.world = s.Name
	current := s.start
	v.Story = append(v.Story, "    "+explored{current, s.scene}.summary())
	for i, by := range v.path {
		x := explored{current, s.scene}
		told := x.describeStep(by)
		current = s.runners[0].take(current, by)
		v.Story = append(v.Story, fmt.Sprintf("%2d. %s", i+1, told))
		v.Story = append(v.Story, "    "+explored{current, s.scene}.summary())
		for _, rule := range current.violations {
			v.Story = append(v.Story, "    !!! "+rule)
		}
	}
}

// summary describes the objects of a state in a line.
func (x explored) summary() string {
	var parts []string
	for i, stored := range x.store {
		if stored == nil {
			continue
		}
		version, _ := parseVersion(stored.GetResourceVersion())
		text := fmt.Sprintf("%s v%d g%d", x.describe(slot(i)), version, stored.GetGeneration())
		if x.names[i].resource == 0 {
			text += " asks for " + x.Owner.Kinds[0].Name(stored.Object)
			if ready := rows.ConditionOf(stored.Object); ready != nil {
				text += fmt.Sprintf(", says %s %s of g%d", ready.Status, ready.Reason, ready.ObservedGeneration)
			}
		} else if ref := metav1.GetControllerOf(stored.Object); ref != nil {
			text += " of " + ref.Name + " " + string(ref.UID)
		}
		if stored.GetDeletionTimestamp() != nil {
			text += ", being deleted"
		}
		parts = append(parts, text)
	}
	return fmt.Sprintf("%8s  %s", time.Duration(x.now).Round(time.Millisecond), strings.Join(parts, "; "))
}

// describeStep says what a step does in a state.
func (x explored) describeStep(s step) string {
	who := ""
	if len(x.controllers) > 1 {
		who = fmt.Sprintf("controller %d: ", s.controller+1)
	}
	switch s.op {
	case opAct:
		return "user: " + x.acts[s.a].name
	case opControlPlane:
		return fmt.Sprintf("control plane: %s %s", model.Duty(s.b), x.describe(slot(s.a)))
	case opDeliver:
		e := x.events[s.a][x.controllers[s.controller].views[s.a].position]
		return fmt.Sprintf("%sits cache gets %s %s", who, strings.ToLower(string(e.verb)), x.describe(e.object.slot))
	case opTell:
		return fmt.Sprintf("%sits handlers hear of %ss", who, x.kinds[s.a])
	case opRelist:
		return fmt.Sprintf("%sits cache lists %ss", who, x.kinds[s.a])
	case opSync:
		return fmt.Sprintf("%ssyncs %s", who, x.describe(slot(s.a)))
	case opCall:
		pending := x.controllers[s.controller].syncs[s.a].pending
		outcome := Outcome(s.b)
		if outcome == Done && x.refuses(pending) {
			outcome = cmp.Or(x.refusing, Refused)
		}
		return fmt.Sprintf("%s%s -> %s", who, pending, outcome)
	case opTime:
		at, _ := x.nextTime(s.controller)
		return fmt.Sprintf("%s passes", time.Duration(at-x.now))
	case opResync:
		return fmt.Sprintf("%sresync of %s", who, x.describe(slot(s.a)))
	case opCrash:
		return who + "crash"
	case opStart:
		var versions []int64
		for resource, position := range x.starts()[s.a] {
			versions = append(versions, x.viewAt(resource, position).version)
		}
		return fmt.Sprintf("%sstart, with caches of version %v", who, versions)
	case opLate:
		return fmt.Sprintf("arrives late: %s", x.late)
	}
	return "?"
}

// patience is how many steps the system may need to come to rest at the start of a world.
const patience = 10_000

// steps returns the sequence, for the flag -explore.steps.
func (v *Violation) steps() string {
	var steps []string
	for _, s := range v.path {
		steps = append(steps, fmt.Sprintf("%d.%d.%d.%d", s.op, s.controller, s.a, s.b))
	}
	return strings.Join(steps, " ")
}

// repeat takes the steps of a sequence. What is explored from there is what the system does by itself.
func (s *search) repeat(steps string) error {
	for i, text := range strings.Fields(steps) {
		var by step
		if _, err := fmt.Sscanf(text, "%d.%d.%d.%d", &by.op, &by.controller, &by.a, &by.b); err != nil {
			return fmt.Errorf("reading step %d, %q: %w", i+1, text, err)
		}
		if !slices.Contains(explored{s.start, s.scene}.steps(), by) {
			return fmt.Errorf("step %d, %q, is not possible any more: the sequence is from another version of the controller or of its world", i+1, text)
		}
		s.start = s.runners[0].take(s.start, by)
		if broken := s.start.violations; len(broken) > 0 {
			return fmt.Errorf("step %d: %s", i+1, strings.Join(broken, "; "))
		}
	}
	s.start.users, s.start.faults, s.start.crashes = 0, 0, 0
	return nil
}

// rest lets the system come to rest, and returns an error if it does not, breaks a rule on
// the way, or rests in a state that is wrong.
func (r *runner) rest(current *state) (*state, error) {
	for range patience {
		x := explored{current, r.scene}
		possible := x.steps()
		next := slices.IndexFunc(possible, step.bySystem)
		wrong := x.world().WrongAtRest()
		if next < 0 && len(wrong) > 0 {
			return nil, fmt.Errorf("at rest: %s", strings.Join(wrong, "; "))
		}
		if next < 0 || len(r.Undeletable) > 0 && x.isQuiet() && len(wrong) == 0 { // a refused deletion is retried forever
			return current, nil
		}
		current = r.take(current, possible[next])
		if len(current.violations) > 0 {
			return nil, fmt.Errorf("on the way to rest: %s", strings.Join(current.violations, "; "))
		}
	}
	return nil, fmt.Errorf("no rest after %d steps", patience)
}
