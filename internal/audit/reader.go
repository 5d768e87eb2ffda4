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

// Reading of whole logs, packed or cut.

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
// 1.5 MiB, and a line has two.
const longestLine = 32 << 20

// Count counts the lines of a log.
type Count struct {
	// Lines is how many there were, without empty ones.
	Lines int
	// Good is how many of them are audit events, and Bad how many are not, or too long to be read.
	Good, Bad int
	// Cut tells that the last line is half written.
	Cut bool
}

// Read hands every write of a log to yield, one line in memory at a time. It takes logs as they are found: packed by
// gzip after their rotation, cut in mid-line at either end, with lines that are something else. It counts those,
// and returns the error of the reader and of no line.
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

// add hands the writes of a line to yield, and counts it.
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

// unpacked reads what gzip has packed, and other things as they are.
func unpacked(r io.Reader) (*bufio.Reader, error) {
	reader := bufio.NewReaderSize(r, 64<<10)
	if magic, err := reader.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return reader, nil //nolint:nilerr // a file of one byte is no gzip, and the next read says what else is wrong
	}
	packed, err := gzip.NewReader(reader)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(packed, 64<<10), nil
}

// nextLine reads up to the next line's end. It returns false for a line that is too long, and skips it.
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
