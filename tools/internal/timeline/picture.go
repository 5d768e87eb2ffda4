// SPDX-License-Identifier: Apache-2.0

// The timeline as text and as a picture.

package timeline

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"text/tabwriter"

	"example.com/sample-controller/test/audit"
)

// WriteText writes a table of the writes.
func (t *Timeline) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\n\nPANEL\tMS\tACTOR\tVERB\tOBJECT\tRESULT\tAFTER\n", t.Title)
	for _, panel := range t.Panels {
		for _, e := range panel.Entries {
			fmt.Fprintf(table, "%d\t%d\t%s\t%s\t%s\t%s\t%s\n",
				e.Panel, e.Since.Milliseconds(), e.Actor, e.Verb, e.Object, e.Result, e.After())
		}
	}
	return table.Flush()
}

// After describes the cause of an entry, or returns "".
func (e *Entry) After() string {
	if e.Cause == nil {
		return ""
	}
	return fmt.Sprintf("%s %s by %s", e.Cause.Verb, e.Cause.Object, e.Cause.Actor)
}

//go:embed timeline.tmpl
var source string

var drawing = template.Must(template.New("").Funcs(template.FuncMap{"cut": cut}).Parse(source))

// WriteSVG writes a self-contained picture without scripts or fonts. It follows the reader's
// preference for a dark or light background.
func (t *Timeline) WriteSVG(w io.Writer) error { return drawing.Execute(w, t.picture()) }

// cut shortens text to its column, but keeps the end, because names often differ only there. No
// character is wider than its number of bytes.
func cut(columns int, text string) string {
	if len(text) <= columns {
		return text
	}
	end := columns / 3
	head, tail := text[:columns-1-end], text[len(text)-end:]
	return strings.ToValidUTF8(head, "") + "…" + strings.ToValidUTF8(tail, "")
}

// The picture is a grid: each write has a row, and each actor has a lane. timeline.tmpl does not
// need these sizes.
const (
	panelsTop  = 44 // below the title
	panelSpace = 14
	titleSpace = 32 // of a panel, above the first row
	endSpace   = 8  // below the last row
	rowHeight  = 18
	notesSpace = 58
	lanesLeft  = 84
	lanesWidth = 208 // of all lanes together
	widestLane = 26
	colors     = 8

	noteColumns = 26
	whatColumns = 57 // with the note
)

// picture is the data of timeline.tmpl.
type picture struct {
	*Timeline

	// End is the position where the panels end and the notes begin.
	Height, End int
	Colors      int
	Lanes       []int
	Drawn       []*drawnPanel
}

// Left describes the writes that the picture does not show.
func (p *picture) Left() string { return count(p.Others, "other write") }

// drawnPanel is a panel that begins at Y. Positions in it are relative to Y.
type drawnPanel struct {
	Panel

	Y, Height int
	Rows      []*row
}

// row shows a write.
type row struct {
	*Entry

	X, Y, Color int
	// Arrow is the path from the row of its cause, if there is one.
	Arrow string
	From  *row
}

// Note returns details about a row.
func (r *row) Note() string { return cut(noteColumns, r.Result) }

// What returns the object of a row, in the columns that the note leaves.
func (r *row) What() string { return cut(whatColumns-len(r.Note()), r.Object) }

// Size describes a panel.
func (p Panel) Size() string {
	first, last := p.Entries[0], p.Entries[len(p.Entries)-1]
	begin := first.Received.UTC().Format("2006-01-02 15:04:05 MST")
	return fmt.Sprintf("%s: %s in %d ms", begin, count(len(p.Entries), "write"), last.Since.Milliseconds())
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// picture places the writes.
func (t *Timeline) picture() *picture {
	p := &picture{Timeline: t, Height: panelsTop, Colors: colors}
	lanes := map[audit.Actor]int{}
	for _, panel := range t.Panels {
		for _, e := range panel.Entries {
			if _, ok := lanes[e.actor]; !ok { // in order of appearance
				lanes[e.actor] = len(lanes)
			}
		}
	}
	width := min(widestLane*len(lanes), lanesWidth)
	for lane := range len(lanes) {
		p.Lanes = append(p.Lanes, lanesLeft+(2*lane+1)*width/(2*len(lanes)))
	}
	for _, panel := range t.Panels {
		drawn := &drawnPanel{Panel: panel, Y: p.Height, Height: titleSpace}
		rows := map[*Entry]*row{}
		for _, e := range panel.Entries {
			r := &row{Entry: e, X: p.Lanes[lanes[e.actor]], Y: drawn.Height + rowHeight/2, Color: lanes[e.actor] % colors}
			if cause := rows[e.Cause]; cause != nil {
				r.From, r.Arrow = cause, arrow(cause, r, width/(2*len(lanes)))
			}
			rows[e] = r
			drawn.Rows = append(drawn.Rows, r)
			drawn.Height += rowHeight
		}
		drawn.Height += endSpace
		p.Height += drawn.Height + panelSpace
		p.Drawn = append(p.Drawn, drawn)
	}
	p.End, p.Height = p.Height+endSpace, p.Height+notesSpace
	return p
}

// arrow returns an arrow from one mark to another mark below it. It first leaves the cause's lane
// by half a lane, so that it does not cross the marks in that lane.
func arrow(from, to *row, half int) string {
	side, end := 1, -1 // right of the cause, and left of the effect
	switch {
	case to.X < from.X:
		side, end = -1, 1
	case to.X == from.X:
		end = 1
	}
	away, tip := from.X+side*half, to.X+end*min(8, half)
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", from.X, from.Y, away, from.Y+rowHeight, away, to.Y, tip, to.Y)
}
