// SPDX-License-Identifier: Apache-2.0

// The names above the lanes.

package timeline

import (
	"slices"
	"strings"
)

const (
	headerLine  = 14.0 // the height of a line of an actor's name
	headerSpace = 8.0  // between two names, and between a name and the line of another
	headerRoom  = 72.0 // the width from which on names are centred over their lanes, in several lines
	nameLines   = 3
)

// header is a line of an actor's name above the lanes. y is relative to the top of the
// headers. A line leads from the end of the name down to the lane.
type header struct {
	lane     int
	x, y     float64
	width    float64
	text     string
	toTheEnd bool // the last line of the name
}

// headers places the lanes' names so that none covers another name, or the line from
// another name to its lane. It returns the height of all names. to is the right end of
// the available space.
func (l lanes) headers(to float64) ([]header, float64) {
	if room := 2*l.width - headerSpace; room >= headerRoom {
		return l.broken(room)
	}
	return l.stairs(to)
}

// broken centres the names over their lanes, broken into lines. Every other name is above
// those of its neighbours. A name is narrower than two lanes, and so does not reach a
// neighbour's line.
func (l lanes) broken(room float64) (placed []header, height float64) {
	names := make([][]string, 0, len(l.names))
	alone := true
	var heights [2]float64
	for i, name := range l.names {
		names = append(names, breakName(clean(name), room))
		for _, text := range names[i] {
			alone = alone && monospaced(text, fontSize) <= l.width-headerSpace/2
		}
		heights[i%2] = max(heights[i%2], float64(len(names[i]))*headerLine)
	}
	if alone {
		heights = [2]float64{0, max(heights[0], heights[1])}
	}
	for i, texts := range names {
		bottom := heights[0] + heights[1]
		if i%2 == 0 && !alone {
			bottom = heights[0]
		}
		for n, text := range texts {
			width := monospaced(text, fontSize)
			y := bottom - float64(len(texts)-n)*headerLine
			placed = append(placed, header{i, l.x(i) - width/2, y, width, text, n == len(texts)-1})
		}
	}
	return placed, heights[0] + heights[1]
}

// stairs places each name at its lane, above the names of all lanes to the right.
func (l lanes) stairs(to float64) (placed []header, height float64) {
	for i, name := range l.names {
		x := l.x(i) - fontSize/2
		text := shorten(clean(name), to-x, fontSize, monospaced)
		placed = append(placed, header{i, x, float64(i) * headerLine, monospaced(text, fontSize), text, true})
	}
	return placed, float64(len(l.names)) * headerLine
}

// breakName breaks a name into lines that fit into room, if possible after hyphens and
// similar characters.
func breakName(name string, room float64) []string {
	fits := int(room / (cell * fontSize))
	var lines []string
	for rest := []rune(name); len(rest) > 0; {
		end := len(rest)
		if end > fits {
			end = max(1, fits/2) // Wide characters take twice the space.
			for n := min(fits, len(rest)) - 1; n > 0; n-- {
				if strings.ContainsRune("-_./@: ", rest[n]) && monospaced(string(rest[:n+1]), fontSize) <= room {
					end = n + 1
					break
				}
			}
		}
		lines, rest = append(lines, strings.TrimSpace(string(rest[:end]))), rest[end:]
	}
	if len(lines) > nameLines {
		last := strings.Join(lines[nameLines-1:], "")
		lines = append(slices.Clone(lines[:nameLines-1]), shorten(last, room, fontSize, monospaced))
	}
	for i := range lines {
		lines[i] = shorten(lines[i], room, fontSize, monospaced)
	}
	return lines
}
