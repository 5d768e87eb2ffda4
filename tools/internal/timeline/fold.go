// SPDX-License-Identifier: Apache-2.0

// Rows, each for one write or for several of the same kind.

package timeline

import (
	"time"

	"example.com/sample-controller/test/audit"
)

// maxRows is the number of rows of a panel above which similar writes share a row.
const maxRows = 40

// row is a line of a panel: one write, or several similar ones that are close in time.
type row struct {
	// steps are the indices of steps, ordered by time.
	steps []int
	// cause is the row that contains the cause, or none.
	cause   int
	guessed bool
}

// sort holds the attributes that all writes of a row share.
type sort struct {
	window                      time.Duration
	actor                       audit.Actor
	verb, resource, subresource string
	code                        int
}

// rowsOf assigns each step of a panel to a row. If there are too many rows, it joins
// similar steps: first adjacent ones, then those within a time window that grows until
// there are few enough rows or no more can be joined.
func rowsOf(steps []step, p panel) []row {
	rows := make([]row, 0, len(p.steps))
	for _, i := range p.steps {
		rows = append(rows, row{steps: []int{i}})
	}
	if len(rows) > maxRows {
		rows = neighbours(steps, p)
	}
	span := steps[p.steps[len(p.steps)-1]].at.Sub(p.start)
	for window := time.Millisecond; len(rows) > maxRows && window <= 2*span; window *= 2 {
		rows = windows(steps, p, window)
	}
	link(steps, rows)
	return rows
}

func sortOf(s step) sort {
	return sort{actor: s.actor, verb: s.Verb, resource: s.Resource, subresource: s.Subresource, code: s.Code}
}

// neighbours joins similar steps that are adjacent.
func neighbours(steps []step, p panel) []row {
	var rows []row
	for n, i := range p.steps {
		if n > 0 && sortOf(steps[i]) == sortOf(steps[p.steps[n-1]]) {
			last := &rows[len(rows)-1]
			last.steps = append(last.steps, i)
			continue
		}
		rows = append(rows, row{steps: []int{i}})
	}
	return rows
}

// windows joins similar steps that are in the same time window.
func windows(steps []step, p panel, window time.Duration) []row {
	var rows []row
	at := map[sort]int{}
	for _, i := range p.steps {
		like := sortOf(steps[i])
		like.window = steps[i].at.Sub(p.start) / window
		if n, ok := at[like]; ok {
			rows[n].steps = append(rows[n].steps, i)
			continue
		}
		at[like] = len(rows)
		rows = append(rows, row{steps: []int{i}})
	}
	return rows
}

// link sets the cause of each row: the row that contains the cause of its first step.
func link(steps []step, rows []row) {
	where := map[int]int{}
	for n, r := range rows {
		for _, i := range r.steps {
			where[i] = n
		}
	}
	for n := range rows {
		first := steps[rows[n].steps[0]]
		cause, ok := where[first.cause]
		if !ok || cause >= n {
			cause = none
		}
		rows[n].cause, rows[n].guessed = cause, first.guessed
	}
}
