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

package testcluster

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// logLines is how many lines of a program's log an error has.
const logLines = 20

// Program is a process that has a name, and a file for what it prints.
type Program struct {
	*Process
	// Name is what messages call it.
	Name string
	log  string
}

// StartProgram starts a program whose output is appended to the file log, or goes to standard error if log is empty.
func StartProgram(name, log string, command *exec.Cmd) (*Program, error) {
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if log != "" {
		file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		command.Stdout, command.Stderr = file, file
	}
	process, err := StartProcess(command)
	if err != nil {
		return nil, err
	}
	return &Program{Process: process, Name: name, log: log}, nil
}

// Err returns nil while the program runs, and then an error with the end of its log.
func (p *Program) Err() error {
	if !p.HasEnded() {
		return nil
	}
	message := fmt.Sprintf("%s ended by itself (%s)", p.Name, p.State())
	if p.log == "" {
		return fmt.Errorf("%s", message)
	}
	content, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s; its log cannot be read: %w", message, err)
	}
	return fmt.Errorf("%s; the end of its log:\n  %s", message, strings.Join(LastLines(string(content), logLines), "\n  "))
}

// LastLines returns the last n lines of a text.
func LastLines(text string, n int) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[max(0, len(lines)-n):]
}
