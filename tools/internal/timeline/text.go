// SPDX-License-Identifier: Apache-2.0

// The widths of texts.

package timeline

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"example.com/sample-controller/tools/internal/printable"
)

// Font sizes in the picture's units. A picture that is 800 pixels wide shows text at 0.89
// of its size.
const (
	fontSize  = 12.0
	titleSize = 16.0
	headSize  = 13.0
)

// cell is the width of a character of a monospaced font of size 1. The widest common
// fonts take 0.602.
const cell = 0.61

// monospaced returns the width of text in a monospaced font. Characters that may be wider
// than a letter count twice.
func monospaced(text string, size float64) float64 {
	cells := 0
	for _, r := range text {
		cells++
		if r >= 0x1100 {
			cells++
		}
	}
	return float64(cells) * cell * size
}

// narrowest is the width of the narrowest character of a font of size 1.
const narrowest = 0.45

// proportional returns the greatest width of bold text in common sans-serif fonts.
func proportional(text string, size float64) float64 {
	width := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("iljtfI.,:;'| ()-", r):
			width += narrowest
		case r >= 0x1100, strings.ContainsRune("mwMW@%", r):
			width += 1.15
		case unicode.IsUpper(r):
			width += 0.85
		default:
			width += 0.73
		}
	}
	return width * size
}

// ellipsis replaces the text that does not fit.
const ellipsis = "…"

// shorten removes the middle of text so that it fits into width. Names usually differ at
// their beginning or end.
func shorten(text string, width, size float64, measure func(string, float64) float64) string {
	if measure(text, size) <= width {
		return text
	}
	runes := []rune(text)
	most := int(width / (narrowest * size))
	for kept := min(len(runes)-1, most); kept > 0; kept-- {
		tail := kept / 2
		short := string(runes[:kept-tail]) + ellipsis + string(runes[len(runes)-tail:])
		if measure(short, size) <= width {
			return short
		}
	}
	return ""
}

// longest limits the length of a text in bytes. Names have at most 253 characters, but
// the names of users are unlimited.
const longest = 300

// clean makes text of a log safe to display, and not too long.
func clean(text string) string {
	if len(text) <= longest {
		return printable.Quote(text)
	}
	cut := longest
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return printable.Quote(text[:cut]) + ellipsis
}

// wrapped breaks text into lines of at most the given width, unless a word is wider.
func wrapped(text string, width, size float64) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch longer := line + " " + word; {
		case line == "":
			line = word
		case monospaced(longer, size) > width:
			lines, line = append(lines, line), word
		default:
			line = longer
		}
	}
	return append(lines, line)
}
