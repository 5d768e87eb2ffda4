// SPDX-License-Identifier: Apache-2.0

// The end of a log.

package supervise

import (
	"io"
	"os"
	"strings"
)

// tailBytes is how much of the end of a log Tail reads. Components write lines of a few
// hundred bytes.
const tailBytes = 32 << 10

// Tail returns the last n lines of a file, without line ends.
func Tail(path string, n int) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	start := max(0, info.Size()-tailBytes)
	data, err := io.ReadAll(io.NewSectionReader(f, start, info.Size()-start))
	if err != nil {
		return nil, err
	}
	return lastLines(string(data), n), nil
}

func lastLines(text string, n int) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-n):]
}
