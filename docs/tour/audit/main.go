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

// Command audit prints the API server's audit log as one line for each write:
// when it was answered, who sent it, what it was, and the answer's code.
//
// It is for the tour, docs/tour.md. Leases, events, and the questions whether
// somebody may read the metrics, are left out.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// event is the part of a line that is read: https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/.
type event struct {
	Verb           string
	UserAgent      string
	User           struct{ Username string }
	ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	StageTimestamp time.Time
}

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
	log, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // the API server is still writing it
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("reading a line of %s: %w", args[0], err)
		}
		if e.isNoise() || len(args) == 2 && e.ObjectRef.Namespace != args[1] {
			continue
		}
		if _, err := fmt.Fprintln(out, e); err != nil {
			return err
		}
	}
	return nil
}

// isNoise tells what goes on all the time and has nothing to do with Foos.
func (e event) isNoise() bool {
	switch e.ObjectRef.Resource {
	case "leases", "events", "tokenreviews", "subjectaccessreviews":
		return true
	}
	return e.ObjectRef.Subresource == "token"
}

func (e event) String() string {
	what := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		what += "/" + e.ObjectRef.Subresource
	}
	return strings.TrimSpace(fmt.Sprintf("%s  %-26s %-7s %d  %-20s %s",
		e.StageTimestamp.Format("15:04:05.000"), e.who(), e.Verb, e.ResponseStatus.Code, what, e.ObjectRef.Name))
}

// who is the controller, or the program where that has no identity of its own.
func (e event) who() string {
	if strings.HasPrefix(e.User.Username, "system:") {
		return e.User.Username[strings.LastIndex(e.User.Username, ":")+1:]
	}
	program, _, _ := strings.Cut(e.UserAgent, "/")
	return program
}
