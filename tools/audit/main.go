// SPDX-License-Identifier: Apache-2.0

// Command audit prints one line for each write in an API server's audit log: the time of the
// response, the actor, the request and the response code. It leaves out constant background
// writes, such as renewals of Leases. kubectl foo timeline draws such a log.
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
	namespace := flags.String("namespace", "", "Print only the writes in this namespace.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name the audit logs to print: JSON lines, plain or compressed with gzip; - means standard input")
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
	// The sender of a request chooses its user agent and names, even if the request is rejected.
	return strings.TrimSpace(printable.Quote(fmt.Sprintf("%s  %-26s %-7s %d  %-20s %s",
		w.Done.Format("15:04:05.000"), who(w), w.Verb, w.Code, w.Path(), w.Name)))
}

// who returns the controller, or the program if the controller has no separate identity.
func who(w audit.Write) string {
	if strings.HasPrefix(w.User, "system:") {
		return w.User[strings.LastIndex(w.User, ":")+1:]
	}
	program, _, _ := strings.Cut(w.Agent, "/")
	return program
}
