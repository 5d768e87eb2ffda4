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

// Joining of changes and requests.

package main

import (
	"cmp"
	"slices"
	"time"

	"example.com/sample-controller/internal/audit"
)

const (
	// hold is how long a change waits for earlier ones, which another watch may report later, and for its record.
	hold = 150 * time.Millisecond
	// giveUp is how long a change waits for its record at most.
	giveUp = 2 * time.Second
	// keepRecords is how long a record waits for its change. A request that changed nothing never has one.
	keepRecords = 10 * time.Second
)

// timeline joins changes and records: a watch knows what was changed and in which order, the audit log knows who
// did it and when.
type timeline struct {
	changes []entry
	records []audit.Write
}

// entry is a change with the request that made it; by is nil as long as that isn't known.
type entry struct {
	change

	by *audit.Write
	// at is when it was done: by the server's clock, or where by is nil the time at which a watch reported it.
	at time.Time
}

func (t *timeline) addChange(c change) { t.changes = append(t.changes, entry{change: c, at: c.seen}) }

func (t *timeline) addRecords(records []audit.Write) { t.records = append(t.records, records...) }

// settle takes out the changes that are known well enough to be told, in the order in which they happened.
func (t *timeline) settle(now time.Time) []entry {
	slices.SortStableFunc(t.changes, func(a, b entry) int { return cmp.Compare(a.revision, b.revision) })
	for i := range t.changes {
		if t.changes[i].by == nil {
			t.claim(&t.changes[i])
		}
	}
	tighten(t.changes)
	n := 0
	for n < len(t.changes) && settled(t.changes[n], now) {
		n++
	}
	told := slices.Clone(t.changes[:n])
	t.changes = slices.Delete(t.changes, 0, n)
	t.records = slices.DeleteFunc(t.records, func(r audit.Write) bool { return now.Sub(r.Done) > keepRecords })
	return told
}

func settled(e entry, now time.Time) bool {
	waited := now.Sub(e.seen)
	return waited >= giveUp || waited >= hold && e.by != nil
}

// claim gives a change the record of the request that made it, if that is there.
func (t *timeline) claim(e *entry) {
	best, bestScore := -1, 0
	for i, r := range t.records {
		if score := likeness(e.change, r); score > bestScore {
			best, bestScore = i, score
		}
	}
	if best < 0 {
		return
	}
	by := t.records[best]
	e.by, e.at = &by, by.Done
	if by.Verb != deleteMany {
		t.records = slices.Delete(t.records, best, best+1)
	}
}

// tighten corrects times by order. The server writes a record when it has answered, which may be some time after
// the change; but a change was there before any that followed it.
func tighten(entries []entry) {
	for i := len(entries) - 2; i >= 0; i-- {
		if entries[i].at.After(entries[i+1].at) {
			entries[i].at = entries[i+1].at
		}
	}
}
