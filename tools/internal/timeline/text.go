// SPDX-License-Identifier: Apache-2.0

// The widths of texts, and the picture as a table in HTML.

package timeline

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"strings"
	"text/tabwriter"
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

// WriteHTML writes the picture and a table of its writes as a self-contained page.
func (p *Picture) WriteHTML(w io.Writer) error {
	var picture bytes.Buffer
	if err := p.WriteSVG(&picture); err != nil {
		return err
	}
	parsed, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	return parsed.Execute(w, struct {
		Title   string
		Picture template.HTML
		Writes  []Entry
		More    int
	}{p.title, template.HTML(picture.String()), p.entries, p.writes - len(p.entries)})
}

const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}</title>
<style>
body{margin:0 auto;padding:8px;max-width:1600px;font:14px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;background:#fff;color:#1f2328}
body>svg{display:block;width:100%;height:auto}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{padding:3px 8px;border-bottom:1px solid #d1d9e0;text-align:left;vertical-align:top;overflow-wrap:break-word}
th,td:nth-child(2),td:nth-child(4),td:nth-child(6){white-space:nowrap}
td:nth-child(2){text-align:right;font-variant-numeric:tabular-nums}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#f0f6fc}th,td{border-color:#3d444d}}
</style>
</head>
<body>
{{.Picture}}
<details>
<summary>The same as a table</summary>
<div class="wide"><table>
<thead><tr><th>panel</th><th>ms</th><th>actor</th><th>verb</th><th>object</th><th>result</th><th>after</th></tr></thead>
<tbody>
{{range .Writes}}<tr><td>{{.Panel}}</td><td>{{.Milliseconds}}</td><td>{{.Actor}}</td><td>{{.Verb}}</td><td>{{.Object}}</td><td>{{.Result}}</td><td>{{.Cause}}</td></tr>
{{end}}</tbody>
</table></div>
{{with .More}}<p>And {{.}} more.</p>
{{end}}</details>
</body>
</html>
`

// WriteText writes the table of the picture's writes as text.
func (p *Picture) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, p.title+"\n\nPANEL\tMS\tACTOR\tVERB\tOBJECT\tRESULT\tAFTER")
	for _, e := range p.entries {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Panel, e.Milliseconds, e.Actor, e.Verb, e.Object, e.Result, e.Cause)
	}
	if more := p.writes - len(p.entries); more > 0 {
		fmt.Fprintf(table, "And %d more.\n", more)
	}
	return table.Flush()
}
