// SPDX-License-Identifier: Apache-2.0

// The actors, as lanes.

package timeline

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/sample-controller/test/audit"
)

// lanes are the actors of a picture, or of a panel, from left to right.
type lanes struct {
	actors []audit.Actor
	names  []string
	index  map[audit.Actor]int
	// left is the left end of the first lane, and width the width of each.
	left, width float64
}

const (
	lanesWidth = 364.0 // of all lanes together, unless they would be narrower than leastLane
	widestLane = 64.0
	leastLane  = 16.0
	colours    = 8
	fewLanes   = 9 // above this number, a panel has only the lanes that it needs

	longestName = 500.0
)

// lanesOf orders the actors: people first, then other actors in the order of appearance,
// then the built-in controllers along the way from a Deployment to its Pods.
func lanesOf(steps []step, panels []panel, left float64) lanes {
	l := lanes{index: map[audit.Actor]int{}, left: left}
	var actors []audit.Actor
	rank := map[audit.Actor]int{}
	uses := map[string]int{}
	for _, p := range panels {
		for _, i := range p.steps {
			if a := steps[i].actor; rank[a] == 0 {
				actors = append(actors, a)
				rank[a] = rankOf(a, steps[i].acts)
				uses[a.Name]++
			}
		}
	}
	slices.SortStableFunc(actors, func(a, b audit.Actor) int { return cmp.Compare(rank[a], rank[b]) })
	for _, a := range actors {
		name := a.Name
		if uses[name] > 1 || name == "" {
			name = a.Full
		}
		name = short(name)
		for n := 2; slices.Contains(l.names, name); n++ {
			name = fmt.Sprintf("%s (%d)", short(a.Full), n)
		}
		l.add(a, name)
	}
	l.width = widthOf(len(actors))
	return l
}

func (l *lanes) add(a audit.Actor, name string) {
	l.index[a] = len(l.names)
	l.actors, l.names = append(l.actors, a), append(l.names, name)
}

// colour returns the colour of a lane's marks and name.
func colour(lane int) int { return lane % colours }

// widthOf returns the width of each of n lanes.
func widthOf(n int) float64 { return max(leastLane, min(widestLane, lanesWidth/float64(n))) }

// of returns the lanes of a panel. If there are few lanes, each panel has all of them, so
// that the panels look alike.
func (l lanes) of(steps []step, p panel) lanes {
	if len(l.names) <= fewLanes {
		return l
	}
	here := lanes{index: map[audit.Actor]int{}, left: l.left}
	for i, a := range l.actors {
		if slices.ContainsFunc(p.steps, func(n int) bool { return steps[n].actor == a }) {
			here.add(a, l.names[i])
		}
	}
	here.width = widthOf(len(here.names))
	return here
}

// short shortens a name to a readable length.
func short(name string) string { return shorten(clean(name), longestName, fontSize, monospaced) }

// rankOf returns an actor's position in the order of lanes, from 1 on.
func rankOf(a audit.Actor, acts bool) int {
	order := []string{"deployment-controller", "replicaset-controller", "kube-scheduler", audit.KwokKubelet, audit.Kubelet}
	switch i := slices.Index(order, a.Name); {
	case acts:
		return 1
	case i >= 0:
		return 3 + i
	case a.Name == "garbage-collector":
		return 3 + len(order)
	}
	return 2
}

func (l lanes) x(actor int) float64 { return l.left + (float64(actor)+0.5)*l.width }

func (l lanes) right() float64 { return l.left + float64(len(l.names))*l.width }
