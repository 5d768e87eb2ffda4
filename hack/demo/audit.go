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

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"
)

// record is what the API server's audit log says of one request that changed something.
type record struct {
	verb        string
	resource    string
	subresource string
	namespace   string
	// name is empty where the server made the name up, and for requests that concern many objects.
	name string
	// replaces is the resourceVersion that an update demanded to replace; empty if it did not care.
	replaces string
	// user is whom the server has authenticated.
	user string
	// manager is what the request's writer appears as in managedFields.
	manager string
	// done is when the server had answered.
	done time.Time
}

// auditEvent is the part of an audit.k8s.io/v1 Event that a record is made from.
type auditEvent struct {
	Stage          string
	RequestURI     string
	Verb           string
	UserAgent      string
	User           struct{ Username string }
	ObjectRef      struct{ Resource, Subresource, Namespace, Name, ResourceVersion string }
	ResponseStatus struct{ Code int }
	StageTimestamp time.Time
}

// parseRecord reads one line of the audit log. It returns false for a request that changed nothing.
func parseRecord(line []byte) (record, bool, error) {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return record{}, false, fmt.Errorf("reading a line of the audit log: %w", err)
	}
	uri, err := url.ParseRequestURI(event.RequestURI)
	if err != nil {
		return record{}, false, fmt.Errorf("reading a line of the audit log: %w", err)
	}
	query := uri.Query()
	refused := event.ResponseStatus.Code < 200 || event.ResponseStatus.Code > 299
	if event.Stage != "ResponseComplete" || refused || query.Has("dryRun") {
		return record{}, false, nil
	}
	return record{
		verb:        event.Verb,
		resource:    event.ObjectRef.Resource,
		subresource: event.ObjectRef.Subresource,
		namespace:   event.ObjectRef.Namespace,
		name:        event.ObjectRef.Name,
		replaces:    event.ObjectRef.ResourceVersion,
		user:        event.User.Username,
		manager:     managerOf(query, event.UserAgent),
		done:        event.StageTimestamp,
	}, true, nil
}

// managerOf is how the API server names a request's writer in managedFields.
func managerOf(query url.Values, userAgent string) string {
	if manager := query.Get("fieldManager"); manager != "" {
		return manager
	}
	program, _, _ := strings.Cut(userAgent, "/")
	return program
}

// auditLog reads a log that grows.
type auditLog struct {
	path   string
	offset int64
}

// next returns the records that were written since the last call.
func (l *auditLog) next() ([]record, error) {
	f, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < l.offset {
		l.offset = 0 // The log was rotated.
	}
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	// The last line may be half written.
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	l.offset += int64(len(data))
	return parseRecords(data)
}

func parseRecords(data []byte) ([]record, error) {
	var records []record
	for line := range bytes.Lines(data) {
		record, changed, err := parseRecord(line)
		if err != nil {
			return nil, err
		}
		if changed {
			records = append(records, record)
		}
	}
	return records, nil
}
