// SPDX-License-Identifier: Apache-2.0

// What the demo prints: each write of the audit log, and what to try next.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/sample-controller/tools/internal/timeline"
)

const (
	// readPeriod is how often the demo reads the audit log.
	readPeriod = 100 * time.Millisecond
	// settleTime is the time without a new write after which writes are printed. The API
	// server logs a write after its response, so an effect may be logged before its cause.
	settleTime = 400 * time.Millisecond
)

// printed says what has been printed, and what waits for that.
type printed struct {
	// entries are the writes in the log, and latest is when another came.
	entries []timeline.Entry
	latest  time.Time
	// until is the time of the last printed write, panel the act that it belongs to, and
	// lasted the ms since that act began.
	until         time.Time
	panel, lasted string
}

// follow prints writes until reached delivers and the log has settled, ctx is done, or the
// controller ends.
func (d *demo) follow(ctx context.Context, reached <-chan error) error {
	ticker := time.NewTicker(readPeriod)
	defer ticker.Stop()
	ends := false
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.controller.Ended():
			return d.controller.Err()
		case err := <-reached:
			if err != nil {
				return err
			}
			ends, reached = true, nil
			d.latest = time.Now() // the API server may log the last write a moment later
		case now := <-ticker.C:
			settled, err := d.tell(now)
			if err != nil || ends && settled {
				return err
			}
		}
	}
}

// tell reads the audit log, and prints what is new if the log has settled.
func (d *demo) tell(now time.Time) (settled bool, err error) {
	writes, err := d.audit.Next()
	if err != nil {
		return false, fmt.Errorf("reading the audit log: %w", err)
	}
	for _, write := range writes {
		d.log.Add(write)
	}
	if len(writes) > 0 {
		before := len(d.entries)
		if d.entries = d.log.Entries(); len(d.entries) != before {
			d.latest = now
		}
	}
	if now.Sub(d.latest) < settleTime {
		return false, nil
	}
	since := d.until // several writes may have the same time
	for _, e := range d.entries {
		if e.At.After(since) {
			d.print(e)
		}
	}
	return true, nil
}

func (d *demo) print(e timeline.Entry) {
	if e.Panel != d.panel {
		fmt.Fprintf(d.out, "\n%s\n", d.paint(dim, fmt.Sprintf("%6s %-21s  %-7s %s", "ms", "who", "", "what")))
	}
	d.panel, d.lasted = e.Panel, e.Milliseconds
	if e.At.After(d.until) { // the last write of an act may come after the first of the next
		d.until = e.At
	}
	// What a success wrote says more than its code.
	_, note, found := strings.Cut(e.Result, ", ")
	if !found && strings.HasPrefix(e.Result, "20") {
		note = ""
	} else if !found {
		note = e.Result
	}
	line := fmt.Sprintf("%-7s %-46s %s", e.Verb, e.Object, note)
	fmt.Fprintf(d.out, "%s %s  %s\n", d.paint(dim, fmt.Sprintf("%6s", e.Milliseconds)),
		d.paint(actorColour[e.Actor], fmt.Sprintf("%-21s", e.Actor)), strings.TrimRight(line, " "))
}

const (
	dim    = "2"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// sampleController is the controller's name in the audit log.
const sampleController = "sample-controller"

// actorColour highlights the user and the controller.
var actorColour = map[string]string{"you": yellow, sampleController: cyan}

func (d *demo) paint(colour, text string) string {
	if !d.colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// showsColour reports whether a file is a terminal that can show colours, and its user has
// not forbidden them (no-color.org).
func showsColour(file *os.File) bool {
	info, err := file.Stat()
	terminal := os.Getenv("TERM")
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && terminal != "" && terminal != "dumb"
}

// suggest prints what to try in a second terminal.
func (d *demo) suggest() {
	fmt.Fprintf(d.out, suggestions, quote(d.kubeconfig), quote(absolute(devclusterPath)), quote(absolute(examplePath)))
}

const suggestions = `
Further changes are printed here too, in ms since your last one. In a second terminal:

  export KUBECONFIG=%s
  kubectl() { %s kubectl "$@"; }

  kubectl get foo,deployment,replicaset,pod
  kubectl scale foo example-foo --replicas=3
  kubectl delete pod -l controller=example-foo        # each is replaced
  kubectl scale deployment example-foo --replicas=5   # drift: the controller undoes it
  kubectl edit foo example-foo
  kubectl delete foo example-foo                      # what it owns is deleted, too
  kubectl apply -f %s

Ctrl-C here stops the controller and the cluster, and removes their data.
`

// absolute returns a path that works in any working directory.
func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// plain has the characters that have no special meaning in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./="

// quote returns text as one word for a shell.
func quote(text string) string {
	if strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
