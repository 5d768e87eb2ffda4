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

package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// follow prints what happens until ctx is done, a step does not come in time, the controller ends or, with -exit,
// the last step is done.
func (d *demo) follow(ctx context.Context) error {
	reading := time.NewTicker(readPeriod)
	defer reading.Stop()
	limit := time.NewTimer(d.timeout)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.controller.ended:
			return d.controller.err
		case <-limit.C:
			return fmt.Errorf("waited %v (-timeout) in vain for: %s", d.timeout, listOf(d.steps))
		case c := <-d.changes:
			d.timeline.addChange(c)
		case now := <-reading.C:
			open := len(d.steps)
			if err := d.tell(now); err != nil {
				return err
			}
			switch {
			case len(d.steps) > 0 && len(d.steps) < open:
				limit.Reset(d.timeout)
			case len(d.steps) == 0 && open > 0:
				limit.Stop()
				if d.finish(); d.exit {
					return nil
				}
			}
		}
	}
}

// tell prints what is known well enough by now.
func (d *demo) tell(now time.Time) error {
	records, err := d.audit.next()
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	d.timeline.addRecords(records)
	for _, entry := range d.timeline.settle(now) {
		if l, ok := lineOf(entry, d.self); ok {
			d.print(l)
		}
	}
	return nil
}

func (d *demo) print(l line) {
	first := d.stopwatch.start.IsZero()
	milliseconds, started := d.stopwatch.read(l)
	if started && !first {
		fmt.Fprintln(d.out)
	}
	fmt.Fprintln(d.out, d.style.format(l, milliseconds))
	d.steps = without(d.steps, l)
}

func listOf(steps []step) string {
	texts := make([]string, 0, len(steps))
	for _, s := range steps {
		texts = append(texts, s.String())
	}
	return strings.Join(texts, "; ")
}
