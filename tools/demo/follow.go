// SPDX-License-Identifier: Apache-2.0

// The loop that prints changes until the steps of an act are done.

package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// clocks are the tickers and the timer of the demo.
type clocks struct {
	// reading ticks when the demo must read the audit log, acting when it must check
	// whether the next act is due.
	reading, acting *time.Ticker
	// limit is the timeout of a step.
	limit *time.Timer
}

// follow prints changes, and starts the next act when all steps of an act are done. It
// ends when ctx is done, a step times out, the controller exits or, with -exit, the last
// step is done.
func (d *demo) follow(ctx context.Context) error {
	c := clocks{time.NewTicker(readPeriod), time.NewTicker(actPeriod), time.NewTimer(d.timeout)}
	defer c.reading.Stop()
	defer c.acting.Stop()
	defer c.limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.controller.Ended():
			return d.controller.Err()
		case <-c.limit.C:
			return fmt.Errorf("timed out after %v (-timeout) waiting for: %s", d.timeout, d.awaited())
		case now := <-c.reading.C:
			if ended, err := d.read(now, c); ended || err != nil {
				return err
			}
		case <-c.acting.C:
			if err := d.proceed(ctx, c); err != nil {
				return err
			}
		}
	}
}

// read prints new lines, and finishes the act if its last step is done. It returns true
// at the end of the demo.
func (d *demo) read(now time.Time, c clocks) (ended bool, err error) {
	open := len(d.steps)
	if err := d.tell(now); err != nil || len(d.steps) == open {
		return false, err
	}
	if c.limit.Reset(d.timeout); len(d.steps) > 0 {
		return false, nil
	}
	if c.acting.Reset(actPeriod); len(d.next) == 0 {
		c.limit.Stop()
	}
	return d.finish()
}

// proceed carries out the next act if there is one and the current one is done.
func (d *demo) proceed(ctx context.Context, c clocks) error {
	if len(d.steps) > 0 || len(d.next) == 0 {
		return nil
	}
	done, err := d.doWhenReady(ctx)
	if done {
		c.limit.Reset(d.timeout)
	}
	return err
}

// awaited returns what the demo waits for.
func (d *demo) awaited() string {
	if len(d.steps) == 0 {
		return "the garbage collector's watch of Foos"
	}
	return listOf(d.steps)
}

// tell prints the writes that are due.
func (d *demo) tell(now time.Time) error {
	writes, err := d.audit.Next()
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	for _, l := range d.narrator.narrate(writes, now) {
		d.print(l)
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
