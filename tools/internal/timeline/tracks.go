// SPDX-License-Identifier: Apache-2.0

// The tracks of arrows beside the lanes.

package timeline

import "slices"

const (
	nearest = 13.0 // distance from the middle of a lane to its first track
	pitch   = 5.0  // distance between two tracks, if there is enough space
)

// trunk is the vertical line from a cause to the last of its effects, on one side of the
// cause's lane.
type trunk struct {
	cause, last int
	lane        int
	right       bool
	track       int
}

// arrowsOf places the arrows between a panel's rows. Each cause has its own track beside
// its lane, so that its arrows neither cross a mark nor overlap with the arrows of
// another cause.
func (c *composer) arrowsOf(rows []row, ys []float64) {
	trunks := c.trunks(rows)
	tracks := assign(trunks)
	for i, r := range rows {
		if r.cause == none {
			continue
		}
		from, to := c.laneOf(rows[r.cause]), c.laneOf(r)
		right := to >= from
		n := slices.IndexFunc(trunks, func(t trunk) bool { return t.cause == r.cause && t.right == right })
		c.arrows = append(c.arrows, arrow{
			fromX: c.lanes.x(from), fromY: ys[r.cause],
			trackX: c.lanes.x(from) + c.offset(trunks[n], tracks),
			toX:    c.lanes.x(to), toY: ys[i],
			colour: colour(from), guessed: r.guessed,
		})
	}
}

func (c *composer) laneOf(r row) int { return c.lanes.index[c.steps[r.steps[0]].actor] }

func (c *composer) trunks(rows []row) []trunk {
	var trunks []trunk
	for i, r := range rows {
		if r.cause == none {
			continue
		}
		lane := c.laneOf(rows[r.cause])
		right := c.laneOf(r) >= lane
		n := slices.IndexFunc(trunks, func(t trunk) bool { return t.cause == r.cause && t.right == right })
		if n < 0 {
			trunks = append(trunks, trunk{cause: r.cause, last: i, lane: lane, right: right})
			continue
		}
		trunks[n].last = i
	}
	return trunks
}

// side is the left or right side of a lane.
type side struct {
	lane  int
	right bool
}

// assign gives each trunk the nearest free track, and returns the number of tracks on
// each side.
func assign(trunks []trunk) map[side]int {
	order := make([]int, len(trunks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return trunks[a].cause - trunks[b].cause })
	ends := map[side][]int{}
	count := map[side]int{}
	for _, i := range order {
		t := &trunks[i]
		at := side{t.lane, t.right}
		for t.track < len(ends[at]) && ends[at][t.track] > t.cause {
			t.track++
		}
		if t.track == len(ends[at]) {
			ends[at] = append(ends[at], 0)
		}
		ends[at][t.track] = t.last
		count[at] = max(count[at], t.track+1)
	}
	return count
}

// offset returns the distance of a trunk from the middle of its lane. It is within the
// lane for any number of tracks.
func (c *composer) offset(t trunk, tracks map[side]int) float64 {
	first := min(nearest, c.lanes.width/2-1)
	step := pitch
	if n := tracks[side{t.lane, t.right}]; n > 1 {
		step = min(pitch, (c.lanes.width/2-1-first)/float64(n-1))
	}
	away := first + float64(t.track)*step
	if !t.right {
		away = -away
	}
	return away
}
