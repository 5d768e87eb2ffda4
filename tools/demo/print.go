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
		if !write.IsBackground() {
			d.latest, d.unprinted = now, true
		}
	}
	if now.Sub(d.latest) < settleTime {
		return false, nil
	}
	if !d.unprinted {
		return true, nil
	}
	d.unprinted = false
	all, err := d.log.Of("", "")
	if err != nil {
		return true, nil //nolint:nilerr // there is no write to a Foo yet
	}
	for _, panel := range all.Panels {
		for _, e := range panel.Entries {
			if !d.printed.Has(e.Number) {
				d.printed.Insert(e.Number)
				d.print(e)
			}
		}
	}
	return true, nil
}

func (d *demo) print(e *timeline.Entry) {
	if e.Panel != d.panel {
		fmt.Fprintf(d.out, "\n%s\n", d.paint(dim, fmt.Sprintf("%6s %-21s  %-7s %s", "ms", "who", "", "what")))
	}
	d.panel, d.lasted = e.Panel, e.Since
	line := fmt.Sprintf("%-7s %-46s %s", e.Verb, e.Object, e.Result)
	fmt.Fprintf(d.out, "%s %s  %s\n", d.paint(dim, fmt.Sprintf("%6d", e.Since.Milliseconds())),
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
