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

package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Log reads a log that grows. The server writes to it before its answer is complete, so a call that has returned is in it. When the
// file has become large, the server renames it and begins a new one.
type Log struct {
	// Path is that of the file that the server writes to.
	Path string
	// read is how many of the renamed files have been read, and offset how far the next one has been.
	read   int
	offset int64
}

// OpenAtEnd returns a log without what is in it now.
func OpenAtEnd(path string) (*Log, error) {
	renamed, err := renamedLogs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &Log{Path: path, read: len(renamed), offset: info.Size()}, nil
}

// Next returns what was written since the last call.
func (l *Log) Next() ([]Write, error) {
	for {
		renamed, err := renamedLogs(l.Path)
		if err != nil {
			return nil, err
		}
		var content []byte
		offset := l.offset
		for _, path := range append(renamed[l.read:], l.Path) {
			more, err := readFrom(path, offset)
			if err != nil {
				return nil, err
			}
			offset += int64(len(more))
			content = append(content, more...)
			if path != l.Path {
				offset = 0
			}
		}
		if now, err := renamedLogs(l.Path); err != nil {
			return nil, err
		} else if len(now) != len(renamed) {
			continue // It was renamed meanwhile: what was read has a gap.
		}
		l.read, l.offset = len(renamed), offset
		return parseLines(content)
	}
}

// renamedLogs lists the files that a log was in before, the oldest first: of x.log, those like x-2026-01-02T03-04-05.678.log.
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

// readFrom returns the whole lines of a file from an offset: the last line may be half written.
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

func parseLines(content []byte) ([]Write, error) {
	var all []Write
	var errs []error
	for line := range bytes.Lines(content) {
		writes, err := Parse(line)
		all, errs = append(all, writes...), append(errs, err)
	}
	return all, errors.Join(errs...)
}
