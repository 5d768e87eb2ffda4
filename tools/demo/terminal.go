// SPDX-License-Identifier: Apache-2.0

// The terminal: colours, width and quoting.

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// styleOf returns the style for a file: plain and of unlimited width, unless the file is
// a terminal.
func styleOf(file *os.File, getenv func(string) string) style {
	columns, ok := columnsOf(file)
	if !ok {
		return style{}
	}
	return style{columns: columns, colour: wantsColour(getenv)}
}

// columnsOf returns the width of a terminal, and false for a file that is not a terminal.
// It runs stty, which every system with a terminal has.
func columnsOf(file *os.File) (int, bool) {
	command := exec.Command("stty", "size")
	command.Stdin = file
	said, err := command.Output()
	if err != nil {
		return 0, false
	}
	var rows, columns int
	// A terminal of unknown size has 0 columns.
	if _, err := fmt.Sscan(string(said), &rows, &columns); err != nil || columns == 0 {
		columns = wide
	}
	return columns, true
}

// wantsColour reports whether a terminal can show colours and its user has not forbidden
// them (no-color.org).
func wantsColour(getenv func(string) string) bool {
	name := getenv("TERM")
	return getenv("NO_COLOR") == "" && name != "" && name != "dumb"
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
