// SPDX-License-Identifier: Apache-2.0

// Command audit prints the writes of an API server's audit log, a line for each: the time
// of the response, the actor, the request and the response code. What goes on all the time,
// such as the renewal of Leases, is left out. kubectl foo timeline draws such a log.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"example.com/sample-controller/test/audit"
	"example.com/sample-controller/tools/internal/printable"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "audit: %s\n", printable.Quote(err.Error())) // it may quote the log
		os.Exit(1)
	}
}

// run executes a command line. It writes warnings to messages.
func run(args []string, stdin io.Reader, stdout, messages io.Writer) error {
	flags := flag.NewFlagSet("audit [flags] LOG...", flag.ContinueOnError)
	flags.SetOutput(messages)
	namespace := flags.String("namespace", "", "Print the writes in this namespace only.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name the audit logs to print, as JSON lines, compressed by gzip or not; - is standard input")
	}
	add := func(w audit.Write) {
		if !w.IsBackground() && (*namespace == "" || w.Namespace == *namespace) {
			fmt.Fprintln(stdout, line(w))
		}
	}
	for _, path := range flags.Args() {
		if err := audit.ReadFile(path, stdin, add, messages); err != nil {
			return err
		}
	}
	return nil
}

// line formats a write.
func line(w audit.Write) string {
	// Whoever sends a request chooses its user agent and names, even if it is refused.
	return strings.TrimSpace(printable.Quote(fmt.Sprintf("%s  %-26s %-7s %d  %-20s %s",
		w.Done.Format("15:04:05.000"), who(w), w.Verb, w.Code, w.Path(), w.Name)))
}

// who returns the controller, or the program if the controller has no identity of its
// own.
func who(w audit.Write) string {
	if strings.HasPrefix(w.User, "system:") {
		return w.User[strings.LastIndex(w.User, ":")+1:]
	}
	program, _, _ := strings.Cut(w.Agent, "/")
	return program
}
