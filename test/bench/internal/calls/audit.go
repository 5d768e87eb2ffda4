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

// Package calls counts what a program asks of the API server, as the server
// itself tells it: writes from its audit log, reads from the metrics of its
// priority and fairness, which know whose a request is.
package calls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Write is a request that the audit log has: one that was to change something.
type Write struct {
	User      string
	Verb      string
	Resource  string // with its subresource, as in foos/status
	Namespace string
	Name      string // "" where the server made it up
	Code      int
	// Received and Done are by the server's clock: it took up the request, it
	// had answered.
	Received, Done time.Time
}

// OK tells whether the server did what was asked.
func (w Write) OK() bool { return w.Code >= 200 && w.Code < 300 }

// auditEvent is the part of an audit.k8s.io/v1 Event that a Write is made from.
type auditEvent struct {
	Stage                    string
	Verb                     string
	User                     struct{ Username string }
	ObjectRef                struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
}

// AuditLog reads a log that grows. The server writes to it before its answer is
// complete, so that a call that has returned is in it. When the file has become
// large, the server renames it and begins a new one.
type AuditLog struct {
	path string
	// done is how many of the renamed files have been read, and offset how far the
	// next has been.
	done   int
	offset int64
}

// OpenAuditLog reads the log at path, from its present end.
func OpenAuditLog(path string) (*AuditLog, error) {
	renamed, err := renamedLogs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &AuditLog{path: path, done: len(renamed), offset: info.Size()}, nil
}

// renamedLogs are the files that a log was in before, the oldest first: of x.log,
// those like x-2026-01-02T03-04-05.678.log.
func renamedLogs(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path)) // in the order of names, which are times
	if err != nil {
		return nil, err
	}
	extension := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), extension) + "-"
	var renamed []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) && filepath.Ext(entry.Name()) == extension {
			renamed = append(renamed, filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
	return renamed, nil
}

// Next returns what was written since the last call.
func (l *AuditLog) Next() ([]Write, error) {
	for {
		renamed, err := renamedLogs(l.path)
		if err != nil {
			return nil, err
		}
		var content []byte
		offset := l.offset
		for _, path := range append(renamed[l.done:], l.path) {
			more, err := readFrom(path, offset)
			if err != nil {
				return nil, err
			}
			offset += int64(len(more))
			content = append(content, more...)
			if path != l.path {
				offset = 0
			}
		}
		if now, err := renamedLogs(l.path); err != nil {
			return nil, err
		} else if len(now) != len(renamed) {
			continue // it was renamed meanwhile: what was read is not whole
		}
		l.done, l.offset = len(renamed), offset
		return parse(content)
	}
}

// readFrom returns the whole lines of a file from an offset: the last line may be
// half written.
func readFrom(path string, offset int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(file)
	return content[:bytes.LastIndexByte(content, '\n')+1], err
}

func parse(content []byte) ([]Write, error) {
	var writes []Write
	for line := range bytes.Lines(content) {
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if event.Stage != "ResponseComplete" {
			continue
		}
		resource := event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			resource += "/" + event.ObjectRef.Subresource
		}
		writes = append(writes, Write{
			User: event.User.Username, Verb: event.Verb, Resource: resource,
			Namespace: event.ObjectRef.Namespace, Name: event.ObjectRef.Name,
			Code: event.ResponseStatus.Code, Received: event.RequestReceivedTimestamp, Done: event.StageTimestamp,
		})
	}
	return writes, nil
}
