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

// Tests of the join.

package main

import (
	"slices"
	"testing"
	"time"

	"example.com/sample-controller/internal/audit"
)

var (
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	// due is when what was seen at noon is held no longer.
	due = noon.Add(hold)
)

func ms(n int) time.Time { return noon.Add(time.Duration(n) * time.Millisecond) }

func TestLikeness(t *testing.T) {
	status := func(edit audit.Write) audit.Write {
		edit.Resource, edit.Namespace, edit.Name, edit.Subresource = "deployments", "default", "web", "status"
		return edit
	}
	whole := func(edit audit.Write) audit.Write {
		edit = status(edit)
		edit.Subresource = ""
		return edit
	}
	fresh := change{resource: "deployments", after: at("7", "ctl", "", deployment(1))}
	updated := change{resource: "deployments", before: deployment(1), after: at("7", "ctl", "status", deployment(1))}
	gone := change{resource: "deployments", before: deployment(1)}
	ended := change{resource: "deployments", before: doomed(deployment(1), 0)}
	dooming := change{resource: "deployments", before: deployment(1), after: doomed(deployment(1), 0)}
	nameless := whole(audit.Write{Verb: "create", Manager: "ctl"})
	nameless.Name = ""
	tests := map[string]struct {
		change change
		record audit.Write
		want   int
	}{
		"a create, by the manager":               {fresh, whole(audit.Write{Verb: "create", Manager: "ctl"}), 2},
		"a create, by another manager":           {fresh, whole(audit.Write{Verb: "create", Manager: "x"}), 1},
		"a create without a name":                {fresh, nameless, 2},
		"an apply that creates":                  {fresh, whole(audit.Write{Verb: "patch", Manager: "ctl"}), 2},
		"a delete creates nothing":               {fresh, whole(audit.Write{Verb: "delete"}), 0},
		"a status update creates nothing":        {fresh, status(audit.Write{Verb: "update"}), 0},
		"the update of this very version":        {updated, status(audit.Write{Verb: "update", Replaces: "1"}), 3},
		"the update of another version":          {updated, status(audit.Write{Verb: "update", Replaces: "2", Manager: "ctl"}), 0},
		"a patch, by the manager":                {updated, status(audit.Write{Verb: "patch", Manager: "ctl"}), 2},
		"a patch of another subresource":         {updated, whole(audit.Write{Verb: "patch", Manager: "ctl"}), 1},
		"a create of a subresource (binding)":    {updated, status(audit.Write{Verb: "create", Manager: "x"}), 1},
		"a create of the object updates nothing": {updated, whole(audit.Write{Verb: "create"}), 0},
		"a delete":                               {gone, whole(audit.Write{Verb: "delete"}), 2},
		"a patch removes nothing":                {gone, whole(audit.Write{Verb: "patch"}), 0},
		"the patch of the last finalizer":        {ended, whole(audit.Write{Verb: "patch"}), 1},
		"the beginning of a deletion":            {dooming, whole(audit.Write{Verb: "delete"}), 1},
		"a patch begins no deletion":             {dooming, whole(audit.Write{Verb: "patch"}), 0},
		"another resource":                       {fresh, audit.Write{Verb: "create", Resource: "pods", Namespace: "default", Name: "web"}, 0},
		"another namespace":                      {fresh, audit.Write{Verb: "create", Resource: "deployments", Namespace: "b", Name: "web"}, 0},
		"another name":                           {fresh, audit.Write{Verb: "create", Resource: "deployments", Namespace: "default", Name: "b"}, 0},
		"another name, that was made up":         {fresh, audit.Write{Verb: "delete", Resource: "deployments", Namespace: "default"}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := likeness(test.change, test.record); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func podCreated(name string, revision uint64) change {
	p := pod()
	p.Name = name
	return change{kind: "Pod", resource: "pods", after: p, revision: revision, seen: noon}
}

// told runs settle and says what came out: names, makers and times in ms.
func told(entries []entry) (names, users []string, times []int64) {
	for _, e := range entries {
		user := "?"
		if e.by != nil {
			user = e.by.User
		}
		names, users, times = append(names, e.object().GetName()), append(users, user), append(times, e.at.Sub(noon).Milliseconds())
	}
	return names, users, times
}

func TestSettleTellsInOrderOfRevisionAndNoLaterThanWhatFollowed(t *testing.T) {
	var line timeline
	line.addChange(podCreated("second", 2))
	line.addChange(podCreated("third", 3))
	line.addChange(podCreated("first", 1))
	line.addRecords([]audit.Write{
		{Verb: "create", Resource: "pods", Namespace: "default", Name: "third", User: "c", Done: ms(30)},
		{Verb: "create", Resource: "pods", Namespace: "default", Name: "second", User: "b", Done: ms(20)},
		{Verb: "create", Resource: "pods", Namespace: "default", Name: "first", User: "a", Done: ms(25)},
	})
	if early := line.settle(due.Add(-1)); len(early) > 0 {
		t.Fatalf("told %d changes before an earlier one could have come", len(early))
	}
	names, users, times := told(line.settle(due))
	if !slices.Equal(names, []string{"first", "second", "third"}) || !slices.Equal(users, []string{"a", "b", "c"}) {
		t.Errorf("got %v by %v", names, users)
	}
	if !slices.Equal(times, []int64{20, 20, 30}) {
		t.Errorf("at %v", times)
	}
	if again := line.settle(due); len(again) > 0 {
		t.Errorf("told %d changes twice", len(again))
	}
}

func TestSettleHoldsLaterChangesBackUntilTheFirstIsGivenUp(t *testing.T) {
	var line timeline
	line.addChange(podCreated("unknown", 1))
	line.addChange(podCreated("known", 2))
	line.addRecords([]audit.Write{{Verb: "create", Resource: "pods", Namespace: "default", Name: "known", User: "a", Done: ms(5)}})
	if early := line.settle(noon.Add(giveUp - 1)); len(early) > 0 {
		t.Fatalf("told %d changes out of order", len(early))
	}
	names, users, _ := told(line.settle(noon.Add(giveUp)))
	if !slices.Equal(names, []string{"unknown", "known"}) || !slices.Equal(users, []string{"?", "a"}) {
		t.Errorf("got %v by %v", names, users)
	}
}

func TestSettleUsesARecordOnceUnlessItIsOfManyObjects(t *testing.T) {
	var line timeline
	line.addChange(podCreated("a", 1))
	line.addChange(podCreated("b", 2))
	line.addRecords([]audit.Write{
		{Verb: "create", Resource: "pods", Namespace: "default", User: "first", Done: ms(1)},
		{Verb: "create", Resource: "pods", Namespace: "default", User: "second", Done: ms(2)},
		{Verb: "deletecollection", Resource: "pods", Namespace: "default", User: "third", Done: ms(3)},
	})
	for i, name := range []string{"a", "b"} {
		c := podCreated(name, uint64(3+i))
		c.before, c.after = c.after, nil
		line.addChange(c)
	}
	if _, users, _ := told(line.settle(due)); !slices.Equal(users, []string{"first", "second", "third", "third"}) {
		t.Errorf("made by %v", users)
	}
	if line.settle(ms(4).Add(keepRecords)); len(line.records) != 0 {
		t.Errorf("%d records kept for ever", len(line.records))
	}
}

func TestLineWithoutARecordNamesTheWriterWithADoubt(t *testing.T) {
	c := podCreated("a", 1)
	c.after = at("1", "some-manager", "", c.after)
	for _, test := range []struct {
		change change
		want   string
	}{{c, "some-manager (?)"}, {podCreated("b", 1), "?"}} {
		if got, _ := lineOf(entry{change: test.change}, "admin"); got.who != test.want {
			t.Errorf("got %q, want %q", got.who, test.want)
		}
	}
}
