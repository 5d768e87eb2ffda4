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

// The audit log of the cluster.

package main

import (
	"bytes"
	"io"
	"os"

	"example.com/sample-controller/tools/internal/audit"
)

// auditLog reads a log that grows.
type auditLog struct {
	path   string
	offset int64
}

// next returns what was changed since the last call.
func (l *auditLog) next() ([]audit.Write, error) {
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

// parseRecords reads whole lines of the log. It leaves out what the server refused.
func parseRecords(data []byte) ([]audit.Write, error) {
	var records []audit.Write
	for line := range bytes.Lines(data) {
		writes, err := audit.Parse(line)
		if err != nil {
			return nil, err
		}
		for _, write := range writes {
			if write.OK() {
				records = append(records, write)
			}
		}
	}
	return records, nil
}
