// SPDX-License-Identifier: Apache-2.0

// What is in the way of a child, for how long, and whether that still passes by itself.

package memory

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/plan"
)

const (
	// refusedFor is how long a child must have been refused before the owner counts as stalled.
	// Some refusals pass by themselves: see queue.RefusedRetry.
	refusedFor = 30 * time.Second
	// uncollectedFor is how long the child of an earlier owner must have waited for the garbage
	// collector before the owner counts as stalled. A new leader of kube-controller-manager takes 15 s.
	uncollectedFor = time.Minute
)

// Problem is what keeps a child from being as its owner wants it, and since when. Some problems
// pass by themselves.
type Problem struct {
	what  string
	since time.Time
}

// observe records that there is a problem, and returns for how long.
func (p *Problem) observe(what string, now time.Time) time.Duration {
	if p.what != what {
		*p = Problem{what, now}
	}
	return now.Sub(p.since)
}

// ObserveProblem records since when something is in the way of a child, and adds to what came of its
// steps whether it lasts. Call it after the last of them.
func (c *Child) ObserveProblem(step *plan.Step, outcome plan.Outcome, now time.Time) plan.Outcome {
	var left time.Duration
	switch {
	case failure.IsRefusal(outcome.Err):
		left = refusedFor - c.problem.observe(fmt.Sprint("refused ", step.Owner.GetGeneration()), now)
	case outcome.Err != nil: // it says nothing about the problem
		return outcome
	case step.Action == plan.ActionLeave && step.IsOfEarlierOwner():
		left = uncollectedFor - c.problem.observe(fmt.Sprint("uncollected ", step.Found.GetUID()), now)
		outcome.Again = plan.Sooner(outcome.Again, max(0, left)) // no event says that nothing happens
	default:
		c.problem = Problem{}
		return outcome
	}
	outcome.Lasts = left <= 0
	return outcome
}

// ObserveSpec remembers that a spec is new, until the child is as it says. A later write that is not for
// a new spec is a repair. reported is the generation that the status describes. It does not tell
// whether the spec was carried out: after a failed attempt, it describes the spec, too.
func (c *Child) ObserveSpec(step *plan.Step, reported int64) {
	switch {
	case step.Action == plan.ActionDelete, reported >= step.Owner.GetGeneration(): // not new
	case reported == 0 && step.Found != nil: // an owner whose status was lost
	default:
		c.newSpec = step.Owner.GetGeneration()
	}
}

// IsRepair reports whether a write to a child undoes someone's change and does not carry out a new
// spec.
func (c *Child) IsRepair(owner plan.Owner) bool { return c.newSpec != owner.GetGeneration() }

// CarriedOut records that the child is as the spec says.
func (c *Child) CarriedOut() { c.newSpec = 0 }

// RepairsOf returns the repairs of an object by one kind of write: a user who deletes an object once does
// not continue a fight over its fields. Nor does one who changes an object that the owner names: what the
// children follow then is new.
func (c *Child) RepairsOf(step *plan.Step) *Series {
	what := string(step.Action) + " " + step.Key.Name
	if follows := step.Follows(); follows != "" {
		of := what + " to "
		what = of + follows
		c.repairs = slices.DeleteFunc(c.repairs, func(repairs *Series) bool {
			return strings.HasPrefix(repairs.what, of) && repairs.what != what
		})
	}
	return c.Repairs(what)
}

// ObserveFights adds to an outcome a fight over one of the owner's objects, if there is one, and to come
// again when the last repair has lasted for period.
func (c *Child) ObserveFights(step *plan.Step, outcome plan.Outcome, period time.Duration, now time.Time) plan.Outcome {
	for _, repairs := range c.repairs {
		fight, left := repairs.Fight(step.SaidFight(step.Owner), period, now)
		switch {
		case fight == nil:
		case left <= 0: // the opponent has given up
			repairs.Forget()
		default:
			outcome.Fight, outcome.Again = fight, plan.Sooner(outcome.Again, left)
		}
	}
	return outcome
}
