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

// Command tour prints the API server's audit log as one line for each write:
// when it was answered, who sent it, what it was, and the answer's code.
//
// It is for docs/tour.md, where it is called audit. Leases, events, and the
// questions whether somebody may read the metrics, are left out.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"example.com/sample-controller/tools/internal/audit"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "audit:", err)
		os.Exit(1)
	}
}

// run prints the log that the first argument names; where there is a second,
// what concerns that namespace.
func run(args []string, out io.Writer) error {
	if len(args) < 1 || len(args) > 2 {
		return errors.New("usage: audit LOG [NAMESPACE]")
	}
	log, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer log.Close()
	count, err := audit.Read(log, func(w audit.Write) {
		if !isNoise(w) && (len(args) == 1 || w.Namespace == args[1]) {
			fmt.Fprintln(out, line(w))
		}
	})
	if err == nil && count.Bad > 0 {
		err = fmt.Errorf("%d lines are none of an audit log", count.Bad)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", args[0], err)
	}
	return nil
}

// isNoise tells what goes on all the time and has nothing to do with Foos.
func isNoise(w audit.Write) bool {
	switch w.Resource {
	case "leases", "events", "tokenreviews", "subjectaccessreviews":
		return true
	}
	return w.Subresource == "token"
}

func line(w audit.Write) string {
	what := w.Resource
	if w.Subresource != "" {
		what += "/" + w.Subresource
	}
	return strings.TrimSpace(fmt.Sprintf("%s  %-26s %-7s %d  %-20s %s",
		w.Done.Format("15:04:05.000"), who(w), w.Verb, w.Code, what, w.Name))
}

// who is the controller, or the program where that has no identity of its own.
func who(w audit.Write) string {
	if strings.HasPrefix(w.User, "system:") {
		return w.User[strings.LastIndex(w.User, ":")+1:]
	}
	program, _, _ := strings.Cut(w.Agent, "/")
	return program
}
