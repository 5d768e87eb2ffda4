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
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Log keeps what a program prints: give it to a command as Stdout and Stderr.
type Log struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed at the next write; nil if nobody waits for one
}

// Write appends to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written != nil {
		close(l.written)
		l.written = nil
	}
	return l.text.Write(p)
}

// next returns a channel that is closed at the next write.
func (l *Log) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == nil {
		l.written = make(chan struct{})
	}
	return l.written
}

// Await waits until the program, whose log this is, has printed a text a number of times.
func (l *Log) Await(ctx context.Context, p *Process, text string, times int) error {
	for {
		written := l.next()
		if l.Count(text) >= times {
			return nil
		}
		select {
		case <-written:
		case <-p.Ended():
			if l.Count(text) < times {
				return fmt.Errorf("%s has ended (%v) and printed %q %d times, want %d", p.command.Path, p.State(), text, l.Count(text), times)
			}
		case <-ctx.Done():
			return fmt.Errorf("%s has printed %q %d times, waited for %d: %w", p.command.Path, text, l.Count(text), times, context.Cause(ctx))
		}
	}
}

// Count counts how often a text was printed.
func (l *Log) Count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}

// Lines returns the lines that contain all of some texts.
func (l *Log) Lines(texts ...string) []string {
	var lines []string
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			lines = append(lines, line)
		}
	}
	return lines
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
