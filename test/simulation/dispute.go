// SPDX-License-Identifier: Apache-2.0

// Disputes: two controllers at work, of which one has an old cache.

package simulation

import (
	"slices"
	"time"
)

// lagStep is by how much the events of each further controller are later than those of the
// one before, so that two controllers never act at the same time: a run would not repeat.
const lagStep = 20 * time.Millisecond

// view is what a controller has been shown of a resource.
type view struct {
	// version is the last one whose events have been delivered, or that was listed.
	version int
	// relist is when the watch ends because an event was dropped, or zero. The cache lacks
	// the event until the next list.
	relist time.Time
}

// latency returns the age of an event of a resource when it arrives.
func (c *connection) latency(resource string) time.Duration { return latencies[resource] + c.lag }

// saw notes that all events of a resource up to a version have been delivered.
func (c *connection) saw(resource string, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.views[resource]
	seen.version = max(seen.version, version)
	c.views[resource] = seen
}

// dropped notes that an event was dropped. It is not in the cache until a list.
func (c *connection) dropped(w *apiWatch) {
	c.mu.Lock()
	c.stale, c.lossy = true, true
	seen := c.views[w.resource]
	seen.relist = time.Now().Add(longDelay)
	c.views[w.resource] = seen
	c.mu.Unlock()
	c.expireWhenDue(w)
}

// expireWhenDue ends a watch with 410 Gone when the list is due that shows a dropped event.
func (c *connection) expireWhenDue(w *apiWatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if due := c.views[w.resource].relist; !due.IsZero() {
		time.AfterFunc(time.Until(due), w.expire)
	}
}

// isBehind reports whether a controller has not been shown a change that should have
// reached it.
func (c *connection) isBehind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for resource, seen := range c.views {
		latest, at := c.cluster.api.latest(resource)
		if !seen.relist.IsZero() || latest > seen.version && time.Since(at) > c.latency(resource) {
			return true
		}
	}
	return false
}

// isDisputed reports whether two controllers are at work that may not agree, because the
// cache of one is behind. Until it is not, each may replace the status that the other wrote.
func (c *cluster) isDisputed() bool {
	c.mu.Lock()
	connections := slices.Clone(c.connections)
	c.mu.Unlock()
	live := slices.DeleteFunc(connections, (*connection).isDead)
	return len(live) > 1 && slices.ContainsFunc(live, (*connection).isBehind)
}

// isAboutStatus reports whether a point is the write of a status, its event, or one of the
// reads that precede the write.
func (c *cluster) isAboutStatus(point injectionPoint) bool {
	return point.verb == "update-status" || point.verb == "get" || point.verb == eventVerb+"modified" && point.id.kind() == c.owner.Kind
}

func (c *connection) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}
