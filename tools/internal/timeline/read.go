// SPDX-License-Identifier: Apache-2.0

// Reading of a log from a file.

package timeline

import (
	"fmt"
	"io"
	"os"

	"example.com/sample-controller/test/audit"
)

// ReadLog calls add with each write of an audit log. The path "-" means stdin. What it
// skips, it says in messages.
func ReadLog(path string, stdin io.Reader, add func(audit.Write), messages io.Writer) error {
	name, source := "standard input", stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		name, source = path, file
	}
	count, err := audit.Read(source, add)
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", name, err)
	case count.Lines == 0:
		return fmt.Errorf("%s is empty", name)
	case count.Good == 0:
		return fmt.Errorf("%s is not an audit log: none of its lines is an event of audit.k8s.io as JSON", name)
	}
	if count.Bad > 0 {
		fmt.Fprintf(messages, "%s: skipped %d of %d lines, which are not audit events\n", name, count.Bad, count.Lines)
	}
	if count.Cut {
		fmt.Fprintf(messages, "%s: skipped the last line, which is incomplete\n", name)
	}
	return nil
}
