// SPDX-License-Identifier: Apache-2.0

// Tests of the decisions.

package plan

import (
	"testing"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestDecide(t *testing.T) {
	adoptable := []footest.ChildOption{footest.WithoutOwner, footest.WithAdoptBy("a")}
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		named primary
		want  Action
	}{
		"no child":                                    {footest.Foo("a"), nil, ActionCreate},
		"as wanted":                                   {footest.Foo("a"), child("a"), ActionNone},
		"drifted":                                     {footest.Foo("a"), child("a", footest.Drifted), ActionUpdate},
		"another Foo's":                               {footest.Foo("a"), child("b"), ActionLeave},
		"an orphan":                                   {footest.Foo("a"), child("a", footest.WithoutOwner), ActionLeave},
		"a deleted Foo's of the same name":            {footest.Foo("a", footest.WithFooUID("uid-new")), child("a"), ActionLeave},
		"another Foo's, being deleted":                {footest.Foo("a"), child("b", footest.Terminating), ActionLeave},
		"an orphan, for this Foo to adopt":            {footest.Foo("a"), child("a", adoptable...), ActionAdopt},
		"an orphan, for another to adopt":             {footest.Foo("a"), child("a", footest.WithoutOwner, footest.WithAdoptBy("b")), ActionLeave},
		"another Foo's, with the annotation":          {footest.Foo("a"), child("b", footest.WithAdoptBy("a")), ActionLeave},
		"to be adopted, but being deleted":            {footest.Foo("a"), child("a", append(adoptable, footest.Terminating)...), ActionLeave},
		"drifted, being deleted":                      {footest.Foo("a"), child("a", footest.Drifted, footest.Terminating), ActionWait},
		"no child, and the Foo is being deleted":      {footest.Foo("a", footest.BeingDeleted), nil, ActionWait},
		"drifted, and the Foo is being deleted":       {footest.Foo("a", footest.BeingDeleted), child("a", footest.Drifted), ActionWait},
		"another Foo's, and the Foo is being deleted": {footest.Foo("a", footest.BeingDeleted), child("b"), ActionWait},
		"to be adopted, and the Foo is being deleted": {footest.Foo("a", footest.BeingDeleted), child("a", adoptable...), ActionWait},
		"no child, suspended":                         {footest.Foo("a", footest.Suspended), nil, ActionSuspend},
		"as wanted, suspended":                        {footest.Foo("a", footest.Suspended), child("a"), ActionNone},
		"drifted, suspended":                          {footest.Foo("a", footest.Suspended), child("a", footest.Drifted), ActionSuspend},
		"another Foo's, suspended":                    {footest.Foo("a", footest.Suspended), child("b"), ActionLeave},
		"to be adopted, suspended":                    {footest.Foo("a", footest.Suspended), child("a", adoptable...), ActionSuspend},
		"being deleted, suspended":                    {footest.Foo("a", footest.Suspended, footest.BeingDeleted), nil, ActionWait},
	} {
		t.Run(name, func(t *testing.T) {
			decided := shipped.Decide(row.foo, row.named, nil, nil)
			if decided.Action != row.want {
				t.Errorf("decided to %s, not to %s", decided.Action, row.want)
			}
		})
	}
}

func TestDecideOnChildrenOfEarlierNames(t *testing.T) {
	old := child("a", footest.Named("old"))
	for name, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		named primary
		old   primary
		goes  bool
	}{
		"deleted once the wanted one is ready":                  {footest.Foo("a"), child("a"), old, true},
		"kept while the wanted name is taken":                   {footest.Foo("a"), child("b"), old, false},
		"kept while the wanted one is being deleted":            {footest.Foo("a"), child("a", footest.Terminating), old, false},
		"kept while the Foo is being deleted":                   {footest.Foo("a", footest.BeingDeleted), nil, old, false},
		"ignored if it is being deleted already":                {footest.Foo("a"), nil, child("a", footest.Named("old"), footest.Terminating), false},
		"ignored if a deleted Foo of the same name controls it": {footest.Foo("a", footest.WithFooUID("uid-new")), nil, old, false},
		"ignored if the Foo asks for it now":                    {footest.Foo("a"), child("a"), child("a"), false},
		"kept while the Foo is suspended":                       {footest.Foo("a", footest.Suspended), child("a"), old, false},
	} {
		t.Run(name, func(t *testing.T) {
			decided := shipped.Decide(row.foo, row.named, []primary{row.old}, nil)
			if goes := len(decided.Obsolete) == 1; goes != row.goes {
				t.Errorf("deleted = %v, not %v", goes, row.goes)
			}
		})
	}
}

func TestUpdateKeepsTheResourceVersion(t *testing.T) {
	desired := shipped.DesiredUpdate(child("a", footest.Drifted, footest.AtVersion("77")), footest.Foo("a"), nil)
	if desired.ResourceVersion != "77" {
		t.Errorf("the update is sent with resourceVersion %q, so that it would overwrite a newer state", desired.ResourceVersion)
	}
}

func TestNoUpdateIfTheLiveChildNeedsNone(t *testing.T) {
	for name, live := range map[string]primary{
		"as wanted":   child("a"),
		"another's":   child("b", footest.Drifted),
		"nobody's":    child("a", footest.WithoutOwner, footest.Drifted),
		"in deletion": child("a", footest.Terminating, footest.Drifted),
	} {
		if desired := shipped.DesiredUpdate(live, footest.Foo("a"), nil); desired != nil {
			t.Errorf("%s: an update is sent", name)
		}
	}
}
