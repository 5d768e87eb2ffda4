// SPDX-License-Identifier: Apache-2.0

// The steps that are run once and not in rounds: latency, memory, very many Foos,
// fairness, profiles.

package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/sample-controller/test/bench/internal/measure"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
)

func (p *Planner) memory() (steps []Step) {
	controllers := p.compared(p.Programs.Unlimited)
	if len(controllers) == 0 {
		return nil
	}
	for _, group := range p.settledTogether(controllers) {
		steps = append(steps, p.holding("settled Foos", false, group))
	}
	steps = append(steps, p.holding("foreign Deployments", true, controllers))
	for _, contender := range p.oursAnd(p.Programs.Unlimited) {
		steps = append(steps, Step{
			Part:  "memory",
			Title: fmt.Sprintf("%d waiting Foos beside %d foreign Deployments: %s", p.Sizes.Peak, p.Sizes.Peak, contender.Name),
			Run: func(ctx context.Context) (string, error) {
				peaks := map[string][]results.Trial{}
				found, err := p.trial(contender, measure.TrialOptions{Foos: p.Sizes.Peak, Foreign: p.Sizes.Peak}, peaks)(ctx)
				memory := p.Results.Memory[contender.Name]
				memory.Peak = peaks[contender.Name]
				p.Results.Memory[contender.Name] = memory
				return found, err
			},
		})
	}
	return steps
}

// settledTogether groups controllers whose settled Foos are the same. Upstream's writes the
// status of each Foo at its start, without what its types lack, so that the next controller
// would find none settled.
func (p *Planner) settledTogether(controllers []program.Program) (groups [][]program.Program) {
	rewrites := func(contender program.Program) bool { return contender.Name == p.Programs.Unlimited.Name }
	if others := slices.DeleteFunc(slices.Clone(controllers), rewrites); len(others) > 0 {
		groups = append(groups, others)
	}
	if i := slices.IndexFunc(controllers, rewrites); i >= 0 {
		groups = append(groups, controllers[i:i+1])
	}
	return groups
}

// holding measures memory beside a kind of objects.
func (p *Planner) holding(kind string, foreign bool, controllers []program.Program) Step {
	return Step{
		Part:  "memory",
		Title: fmt.Sprintf("memory beside %v %s: %s", p.Sizes.Holdings, kind, names(controllers)),
		Run: func(ctx context.Context) (string, error) {
			p.dropHoldings(controllers, foreign)
			err := p.Bench.Holdings(ctx, controllers, p.Sizes.Holdings, foreign, func(name string, holding results.Holding) {
				p.addHolding(name, foreign, holding)
			})
			return p.lastHoldings(controllers, foreign), err
		},
	}
}

func names(programs []program.Program) string {
	list := make([]string, len(programs))
	for i, one := range programs {
		list[i] = one.Name
	}
	return strings.Join(list, ", ")
}

func holdings(memory *results.Memory, foreign bool) *[]results.Holding {
	if foreign {
		return &memory.Foreign
	}
	return &memory.Foos
}

// dropHoldings removes the results of an earlier run.
func (p *Planner) dropHoldings(of []program.Program, foreign bool) {
	for _, contender := range of {
		memory := p.Results.Memory[contender.Name]
		*holdings(&memory, foreign) = nil
		p.Results.Memory[contender.Name] = memory
	}
}

func (p *Planner) addHolding(name string, foreign bool, holding results.Holding) {
	memory := p.Results.Memory[name]
	list := holdings(&memory, foreign)
	*list = append(*list, holding)
	p.Results.Memory[name] = memory
}

func (p *Planner) lastHoldings(controllers []program.Program, foreign bool) string {
	var found []string
	for _, contender := range controllers {
		memory := p.Results.Memory[contender.Name]
		if list := *holdings(&memory, foreign); len(list) > 0 {
			found = append(found, fmt.Sprintf("%s %.0f MiB", contender.Name, list[len(list)-1].PeakMiB))
		}
	}
	return strings.Join(found, ", ")
}

// large shows when one replica is not enough.
func (p *Planner) large() []Step {
	controllers := slices.Concat(p.settledTogether(p.compared(p.Programs.Unlimited))...)
	if len(controllers) == 0 {
		return nil
	}
	return []Step{{
		Part:  "large",
		Title: fmt.Sprintf("a start beside %d settled Foos", p.Sizes.Large),
		Run: func(ctx context.Context) (string, error) {
			found, err := p.Bench.Large(ctx, controllers, measure.LargeOptions{Foos: p.Sizes.Large, Rest: p.Sizes.LargeRest, Say: p.Say})
			if err != nil {
				return "", err
			}
			p.Results.Large = found
			var each []string
			for _, contender := range controllers {
				start := found.Starts[contender.Name]
				each = append(each, fmt.Sprintf("%s: ready in %.1f s, idle in %.1f s, %.1f s of CPU, %.0f MiB, at rest %.2f s of CPU and %.0f calls in %.0f s",
					contender.Name, start.ReadySeconds, start.PassSeconds, start.CPUSeconds, start.PeakMiB,
					start.Rest.CPUMilliseconds/1000, results.Total(start.Rest.Calls), start.Rest.Seconds))
			}
			return strings.Join(each, "; "), nil
		},
	}}
}
