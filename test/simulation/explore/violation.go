// SPDX-License-Identifier: Apache-2.0

// A violation: the shortest sequence of steps to it, told moment by moment, and its repetition. And
// the graph of the states of a small world, as text for Graphviz.

package explore

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/model"
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
			if ready := footest.ConditionOf(stored.Object); ready != nil {
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
			outcome = x.refusing
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

// patience is how many steps of the system a repeated sequence may need to come to rest.
const patience = 10_000

// steps returns the sequence, for the flag -explore.steps.
func (v *Violation) steps() string {
	var steps []string
	for _, s := range v.path {
		steps = append(steps, fmt.Sprintf("%d.%d.%d.%d", s.op, s.controller, s.a, s.b))
	}
	return strings.Join(steps, " ")
}

// repeat takes the steps of a sequence in a world, and lets the system come to rest. It returns an
// error if a rule is broken on the way or at rest.
func repeat(w World, create New, steps string) error {
	s, err := newSearch(w, create, 1)
	if err != nil {
		return err
	}
	r, current := s.runners[0], s.start
	for i, text := range strings.Fields(steps) {
		var by step
		if _, err := fmt.Sscanf(text, "%d.%d.%d.%d", &by.op, &by.controller, &by.a, &by.b); err != nil {
			return fmt.Errorf("reading step %d, %q: %w", i+1, text, err)
		}
		if !slices.Contains(explored{current, s.scene}.steps(), by) {
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
		if !slices.Contains(explored{current, s.scene}.steps(), resync) {
			continue
		}
		current = r.take(current, resync)
		if current, err = r.rest(current); err != nil || current.wrote {
			return fmt.Errorf("at rest, a resync causes a call (%w)", err)
		}
	}
	return nil
}

// rest lets the system come to rest, and returns an error if it does not, breaks a rule on
// the way, or rests in a state that is wrong. The state has wrote if there was a call.
func (r *runner) rest(current *state) (*state, error) {
	called := false
	for range patience {
		x := explored{current, r.scene}
		possible := x.steps()
		next := slices.IndexFunc(possible, step.bySystem)
		if next < 0 {
			if wrong := x.world().WrongAtRest(); len(wrong) > 0 {
				return current, fmt.Errorf("at rest: %s", strings.Join(wrong, "; "))
			}
			current = current.clone()
			current.wrote = called
			return current, nil
		}
		current = r.take(current, possible[next])
		called = called || current.wrote
		if len(current.violations) > 0 {
			return current, fmt.Errorf("on the way to rest: %s", strings.Join(current.violations, "; "))
		}
	}
	return current, fmt.Errorf("no rest after %d steps", patience)
}

// colors are those of the steps, by who takes them, and legend says so.
var colors = map[op]string{
	opAct: "orange", opControlPlane: "green3", opDeliver: "blue", opTell: "blue", opRelist: "blue", opSync: "purple",
	opResync: "purple", opCall: "gray20", opLate: "gray20", opTime: "gray75", opCrash: "red", opStart: "red",
}

const legend = "orange: users and others; green: control plane; blue: an event arrives; " +
	"purple: the controller begins a sync; black: a call is answered; gray: time passes; red: crash and start"

func writeGraph(t *testing.T, worlds []World, create New) {
	t.Helper()
	if len(worlds) != 1 {
		t.Fatalf("-explore=%s names %d worlds: one can be drawn", *size, len(worlds))
	}
	graph, err := graphOf(worlds[0], create)
	if err == nil {
		err = os.WriteFile(*drawTo, []byte(graph), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// graphOf explores a small world, and returns all of its states and steps in Graphviz's language.
func graphOf(w World, create New) (string, error) {
	s, err := newSearch(w, create, 1)
	if err != nil {
		return "", err
	}
	var nodes, edges strings.Builder
	titles := map[uint32]string{0: explored{s.start, s.scene}.summary()}
	s.onStep = func(from, to uint32, by step, reached *state) {
		if titles[to] == "" {
			titles[to] = explored{reached, s.scene}.summary()
		}
		fmt.Fprintf(&edges, "  %d -> %d [color=%s]\n", from, to, colors[by.op])
	}
	if _, complete := s.explore(); !complete {
		return "", fmt.Errorf("world %s: a violation or a bound ended its exploration, so that there is no whole to draw", w.Name)
	}
	for id, c := range s.components() {
		style := ""
		if c.terminal {
			style = ", style=filled, fillcolor=green3"
		}
		fmt.Fprintf(&nodes, "  %d [tooltip=%q%s]\n", id, titles[uint32(id)], style)
	}
	label := fmt.Sprintf("%s: %d states, %d steps. Those at rest are filled.\n%s", w.About, len(titles), s.steps, legend)
	return fmt.Sprintf(`digraph {
  rankdir=LR
  nodesep=0.05
  label=%q
  node [shape=circle, label="", width=0.1]
  edge [arrowsize=0.3]
%s%s}
`, label, &nodes, &edges), nil
}
