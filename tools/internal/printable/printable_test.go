// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"encoding/json"
	"testing"
)

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		`plain "text" \n`:    `plain "text" \n`,
		"ä 世 😀 \ufffd":       "ä 世 😀 \ufffd",
		"\x1b[2J\a":          `\x1b[2J\a`,
		"a\r\n\tb":           `a\r\n\tb`,
		"\x7f\u0085\u009b":   `\x7f\u0085\u009b`,
		"\u202a\u202e\u202c": `\u202a\u202e\u202c`,
		"\u2066x\u2069":      `\u2066x\u2069`,
		"\u2028\u200b\ufeff": `\u2028\u200b\ufeff`,
		"\xff\x9b":           `\xff\x9b`,
		"\U000e0001":         `\U000e0001`,
	} {
		if got := Quote(text); got != want {
			t.Errorf("Quote(%q) is %s, not %s", text, got, want)
		}
	}
}

func TestEscapeJSONKeepsTheValue(t *testing.T) {
	const text = "ä\u009b\u202e\x7f\x1b\n\U000e0001"
	data, err := json.MarshalIndent([]string{text}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	escaped := EscapeJSON(data)
	var got []string
	if err := json.Unmarshal(escaped, &got); err != nil || got[0] != text {
		t.Errorf("%v, %q", err, got)
	}
	if want := "[\n \"ä\\u009b\\u202e\\u007f\\u001b\\n\\udb40\\udc01\"\n]"; string(escaped) != want {
		t.Errorf("got %s, want %s", escaped, want)
	}
}
