// SPDX-License-Identifier: Apache-2.0

// Reading of whole logs, which may be compressed or incomplete.

package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// longestLine is the size in bytes above which a line is skipped. etcd accepts objects of
// 1.5 MiB, and a line contains two.
const longestLine = 32 << 20

// Count counts the lines of a log.
type Count struct {
	// Lines is the number of lines that are not empty.
	Lines int
	// Good is the number of lines that are audit events; Bad is the number of those that
	// are not, or are too long.
	Good, Bad int
	// Cut reports whether the last line is incomplete.
	Cut bool
}

// Read calls yield with each write of a log, and holds one line in memory at a time. The
// log may be compressed by gzip after a rotation, may begin and end in the middle of a
// line, and may contain lines that are not events. Read counts such lines; it returns an
// error only if the reader fails.
func Read(r io.Reader, yield func(Write)) (Count, error) {
	reader, err := unpacked(r)
	if err != nil {
		return Count{}, err
	}
	var count Count
	for {
		line, whole, err := nextLine(reader)
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return count, fmt.Errorf("after %d lines: %w", count.Lines, err)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 || !whole {
			count.add(text, whole, ended, yield)
		}
		if ended {
			count.Cut = count.Cut || errors.Is(err, io.ErrUnexpectedEOF)
			return count, nil
		}
	}
}

// add counts a line, and calls yield with its writes.
func (c *Count) add(line []byte, whole, last bool, yield func(Write)) {
	c.Lines++
	writes, err := Parse(line)
	switch {
	case whole && err == nil:
		c.Good++
		for _, write := range writes {
			yield(write)
		}
	case last:
		c.Cut = true
	default:
		c.Bad++
	}
}

// unpacked returns a reader that decompresses gzip, and returns anything else unchanged.
func unpacked(r io.Reader) (*bufio.Reader, error) {
	reader := bufio.NewReaderSize(r, 64<<10)
	if magic, err := reader.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return reader, nil //nolint:nilerr // a file of one byte is not gzip, and the next read returns any other error
	}
	packed, err := gzip.NewReader(reader)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(packed, 64<<10), nil
}

// nextLine reads up to the end of the line. whole is false if the line is too long and
// was skipped.
func nextLine(r *bufio.Reader) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > longestLine {
			line, whole = nil, false
		}
		if whole {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err
		}
	}
}
