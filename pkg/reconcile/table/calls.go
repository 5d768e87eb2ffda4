// SPDX-License-Identifier: Apache-2.0

// Rows of things outside the cluster.

package table

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/reconcile/external"
	"example.com/sample-controller/pkg/reconcile/plan"
)

// Calls is a row of something outside the cluster, of which each owner has one.
func Calls[F plan.Owner, R any](call plan.Call[F, R]) Row[F] {
	return func(kind *plan.Kind) *Children { return &Children{ChildKind: call.Of(kind)} }
}

// Callers make the calls of a kind's rows, in workers of their own, and remember the last answer for each owner.
type Callers struct {
	byRow map[*plan.ChildKind]*external.Runner[plan.Owner, any]
}

// NewCallers returns the Callers of a kind. The names of their queues in metrics begin with name. They call
// changed with the key of an owner of which Take would return something new.
func (k *Kind) NewCallers(name string, now clock.WithTicker, changed func(key cache.ObjectName)) *Callers {
	c := &Callers{byRow: map[*plan.ChildKind]*external.Runner[plan.Owner, any]{}}
	objects := external.Objects[plan.Owner]{
		Read: func(ctx context.Context, key cache.ObjectName) (plan.Owner, error) {
			return k.Owners.Get(ctx, key, metav1.GetOptions{})
		},
		Same: k.HasSameSpec, Changed: changed, Clock: now,
	}
	for _, row := range k.Calls {
		of := row.Call()
		c.byRow[row] = external.NewRunner(external.Call[plan.Owner, any]{
			Name: name + "-" + strings.ToLower(row.Kind), Do: of.Do, Undo: of.Undo, Poll: of.Poll, Timeout: of.Timeout, Workers: of.Workers,
			Renew: func(answer any) time.Time { return of.Judge(answer).Due() },
			Recall: func(owner plan.Owner) external.Recalled[any] {
				answer, wasAsked := row.Recall(owner)
				return external.Recalled[any]{Asked: wasAsked, Answered: answer.Known, Answer: answer.Value}
			},
		}, objects)
	}
	return c
}

// Take takes the step of a call, and returns what is known: see external.Runner. A sync that the owner's user
// requests makes a call at once.
func (c *Callers) Take(step *plan.Step) plan.Outcome {
	runner := c.byRow[step.ChildKind]
	if step.Action != plan.ActionCall && step.Action != plan.ActionUndo {
		runner.Forget(cache.MetaObjectToName(step.Owner))
		return plan.Outcome{}
	}
	is := runner.Ask(step.Owner, step.OwnerKind.PendingSync(step.Owner))
	return plan.Outcome{Answer: &plan.Answer{Known: is.Known, Value: is.Value, Err: is.Err, Undone: is.Undone, Pending: is.Pending}}
}

// Forget ends the calls for an owner that is gone.
func (c *Callers) Forget(key cache.ObjectName) {
	for _, runner := range c.byRow {
		runner.Forget(key)
	}
}

// Run makes calls until ctx is done, which also cancels those in progress. Call it once.
func (c *Callers) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, runner := range c.byRow {
		running.Go(func() { runner.Run(ctx) })
	}
	running.Wait()
}
