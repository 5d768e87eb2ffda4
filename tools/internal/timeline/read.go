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

// Reading of a log from a file.

package timeline

import (
	"fmt"
	"io"
	"os"

	"example.com/sample-controller/internal/audit"
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
