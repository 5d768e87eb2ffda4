// SPDX-License-Identifier: Apache-2.0

// Tests of what makes a retry the same as the write that failed.

package plan

import (
	"testing"

	"example.com/sample-controller/test/footest"
)

func TestTheSameTask(t *testing.T) {
	row := shipped
	update := func(options ...footest.ChildOption) Decision[primary] {
		return Decision[primary]{Action: ActionUpdate, Named: child("a", append(options, footest.Drifted)...)}
	}
	drifted := func(options ...footest.ChildOption) Task { return row.Task(footest.Foo("a"), update(options...)) }
	renamed := update()
	renamed.Obsolete = []primary{child("a", footest.Named("old"))}
	for name, want := range map[string]struct {
		task Task
		same bool
	}{
		"nothing has changed":                 {drifted(), true},
		"the child's status has changed":      {drifted(footest.AtVersion("21")), footest.Primary.Generation != nil},
		"the child's spec has changed":        {drifted(footest.AtGeneration(2)), false},
		"the child's owner has changed":       {drifted(footest.WithoutOwner), false},
		"the Foo's spec has changed":          {row.Task(footest.Foo("a", footest.WithGeneration(2)), update()), false},
		"the Foo was recreated":               {row.Task(footest.Foo("a", footest.WithFooUID("new")), update()), false},
		"the decision is another":             {row.Task(footest.Foo("a"), Decision[primary]{Action: ActionCreate}), false},
		"there is a child of an earlier name": {row.Task(footest.Foo("a"), renamed), false},
		"there was no task":                   {Task{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := drifted().Same(want.task); got != want.same {
				t.Errorf("Same = %v", got)
			}
		})
	}
}

// A cache lists objects in any order. If the order made another task, each retry of a
// refused deletion would count as new, and nothing would back off.
func TestATaskDoesNotDependOnTheOrderOfTheCache(t *testing.T) {
	foo, named := footest.Foo("a"), child("a")
	old, older := child("a", footest.Named("old"), footest.AtGeneration(2), footest.AtVersion("22")), child("a", footest.Named("older"), footest.AtGeneration(3), footest.AtVersion("23"))
	task := func(controlled ...primary) Task {
		return shipped.Task(foo, shipped.Decide(foo, named, controlled, Seen{}))
	}
	if !task(named, old, older).Same(task(older, named, old)) {
		t.Error("the same children in another order are another task")
	}
}
