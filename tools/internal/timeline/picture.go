// SPDX-License-Identifier: Apache-2.0

// The timeline as text and as a picture.

package timeline

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
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

var drawing = template.Must(template.New("").Funcs(template.FuncMap{"fit": fit}).Parse(source))

// WriteSVG writes a self-contained picture without scripts or fonts. It follows the reader's
// preference for a dark or light background.
func (t *Timeline) WriteSVG(w io.Writer) error { return drawing.Execute(w, t.picture()) }

// columnWidth is the width of a character of the picture's font.
const columnWidth = 7.2

// fit returns the attribute that narrows a text to its columns, if it may be longer: no character
// is wider than its number of bytes.
func fit(columns int, text string) template.HTMLAttr {
	if len(text) <= columns {
		return ""
	}
	return template.HTMLAttr(fmt.Sprintf(`lengthAdjust="spacingAndGlyphs" textLength="%.0f"`, float64(columns)*columnWidth))
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

// Size describes a panel.
func (p Panel) Size() string {
	first, last := p.Entries[0], p.Entries[len(p.Entries)-1]
	return fmt.Sprintf("%s: %d writes in %d ms", first.Received.UTC().Format("2006-01-02 15:04:05 MST"), len(p.Entries), last.Since.Milliseconds())
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
		drawn := &drawnPanel{Panel: panel, Y: p.Height, Height: titleSpace + len(panel.Entries)*rowHeight + endSpace}
		rows := map[*Entry]*row{}
		for i, e := range panel.Entries {
			r := &row{Entry: e, X: p.Lanes[lanes[e.actor]], Y: titleSpace + i*rowHeight + rowHeight/2, Color: lanes[e.actor] % colors}
			if cause := rows[e.Cause]; cause != nil {
				r.From, r.Arrow = cause, arrow(cause, r, width/(2*len(lanes)))
			}
			rows[e] = r
			drawn.Rows = append(drawn.Rows, r)
		}
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
