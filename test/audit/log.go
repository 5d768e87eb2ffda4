// SPDX-License-Identifier: Apache-2.0

// Following a log while the API server writes it.

package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Log follows a log that grows. The server writes an event before it completes the
// response, so the log contains every call that has returned. When the file becomes
// large, the server renames it and begins a new one.
type Log struct {
	// Path is the path of the file that the server writes to.
	Path string
	// read is the number of renamed files that have been read to the end, and offset the
	// number of bytes that have been read of the next file.
	read   int
	offset int64
}

// OpenAtEnd opens a log at its present end.
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
			continue // The file was renamed meanwhile: what was read has a gap.
		}
		l.read, l.offset = len(renamed), offset
		return parseLines(content)
	}
}

// renamedLogs lists the renamed files of a log, the oldest first: for x.log, those like
// x-2026-01-02T03-04-05.678.log.
func renamedLogs(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path)) // sorted by name, and the names contain the time
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

// readFrom returns the complete lines of a file from an offset on. The last line may be
// incomplete.
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
