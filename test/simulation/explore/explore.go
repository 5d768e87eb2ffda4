// SPDX-License-Identifier: Apache-2.0

// The entry point for tests.

package explore

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/test/footest"
)

var (
	size    = flag.String("explore", "tiny", "which worlds to explore: tiny, small, medium, large, or part of a name")
	minutes = flag.Int("explore.minutes", 0, "end the exploration of a world after so many minutes; 0 means never")
	drawTo  = flag.String("explore.draw", "", "draw the world of -explore to this file, if it is a small one")
	memory  = flag.Uint64("explore.gigabytes", 7, "end the exploration of a world at so much memory")
)

// boundMet says that an exploration shows nothing.
const boundMet = "a bound ended the exploration before it was complete"

// Test explores each of the worlds, and fails if a rule is broken in one, or if a bound ends
// an exploration before it is complete.
func Test(t *testing.T, owner *footest.OwnerRow, create New) {
	t.Helper()
	worlds := chosen(owner)
	if *drawTo != "" {
		draw(t, worlds, create)
		return
	}
	states, steps, began := 0, 0, time.Now()
	for _, world := range worlds {
		t.Run(world.Name, func(t *testing.T) {
			result, err := Run(world, create, Bounds{Time: time.Duration(*minutes) * time.Minute, Memory: *memory << 30}, printProgress)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("explore: %s\n", result)
			states, steps = states+result.States, steps+result.Steps
			switch {
			case result.Violation != nil:
				t.Error(result.Violation)
			case !result.Complete:
				t.Errorf("%s: %s", world.Name, boundMet)
			}
		})
	}
	fmt.Printf("explore: %d worlds, %d states, %d steps, %s\n", len(worlds), states, steps, time.Since(began).Round(time.Second))
}

func draw(t *testing.T, worlds []World, create New) {
	t.Helper()
	if len(worlds) != 1 {
		t.Fatalf("-explore=%s names %d worlds: one can be drawn", *size, len(worlds))
	}
	picture, err := Draw(worlds[0], create)
	if err == nil {
		err = os.WriteFile(*drawTo, []byte(picture), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func chosen(owner *footest.OwnerRow) []World {
	switch *size {
	case "small":
		return Small(owner)
	case "medium":
		return Medium(owner)
	case "large":
		return Large(owner)
	}
	var worlds []World
	for _, w := range Large(owner) {
		if w.Name == *size {
			return []World{w}
		}
		if strings.Contains(w.Name, *size) {
			worlds = append(worlds, w)
		}
	}
	return worlds
}

// String describes a result in a line.
func (r *Result) String() string {
	return fmt.Sprintf("%-24s %9d states %10d steps, depth %4d, %4d rests, %s", r.World.Name, r.States, r.Steps, r.Depth, r.Rests, r.Elapsed.Round(100*time.Millisecond))
}

func printProgress(p Progress) {
	fmt.Fprintf(os.Stderr, "explore: %s: %d states, %d at the frontier, depth %d, %.0f states/s, %d MiB\n",
		p.World, p.States, p.Frontier, p.Depth, float64(p.States)/p.Elapsed.Seconds(), p.Heap>>20)
}
