// SPDX-License-Identifier: Apache-2.0

// Package printable makes text of others, such as tenants of a cluster, safe to print.
package printable

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Quote writes what a terminal would not show as a character as Go does in strings, such as
// \x1b and \n: the text then can't move the cursor, reverse the text after it, or begin a line.
func Quote(text string) string {
	quoted := strconv.Quote(text)
	return unquoted.Replace(quoted[1 : len(quoted)-1])
}

// unquoted has what Go escapes in strings but a terminal shows.
var unquoted = strings.NewReplacer(`\"`, `"`, `\\`, `\`)

// EscapeJSON returns JSON with the same values that is safe to print: its encoder escapes
// only some of the characters that Quote does.
func EscapeJSON(data []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(data) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.Bytes()
}
