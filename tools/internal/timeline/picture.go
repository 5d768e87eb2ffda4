// SPDX-License-Identifier: Apache-2.0

// The timeline as text, as a picture and as a page.

package timeline

import (
	"embed"
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

// WriteSVG writes a self-contained picture without scripts or fonts. It follows the reader's
// preference for a dark or light background.
func (t *Timeline) WriteSVG(w io.Writer) error { return t.execute(w, "picture") }

// WriteHTML writes a self-contained page with the picture and the table.
func (t *Timeline) WriteHTML(w io.Writer) error { return t.execute(w, "page") }

//go:embed timeline.tmpl
var templates embed.FS

func (t *Timeline) execute(w io.Writer, name string) error {
	parsed, err := template.New(name).Funcs(template.FuncMap{"cut": cut}).ParseFS(templates, "timeline.tmpl")
	if err != nil {
		return err
	}
	return parsed.ExecuteTemplate(w, name, t.picture())
}

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

const (
	// maxPanels is the greatest number of panels in a picture.
	maxPanels = 12
	// maxRows is the number of writes in a panel above which similar writes share a row.
	maxRows = 40
)

// picture is the data of timeline.tmpl.
type picture struct {
	*Timeline

	// End is the position where the panels end and the notes begin.
	Height, End int
	Colors      int
	Drawn       []*drawnPanel
}

// drawnPanel is a panel that begins at Y. Positions in it are relative to Y.
type drawnPanel struct {
	Panel

	Y, Height int
	Lanes     []int
	Rows      []*row
}

// row shows a write, or the first of several similar ones.
type row struct {
	*Entry

	Place Place
	// More is the number of other writes in the row.
	More int
	// Arrow is the path from the row of its cause, or "".
	Arrow string
	From  Place
}

// Note returns details about a row.
func (r *row) Note() string {
	note := r.Result
	switch {
	case r.More > 0 && r.OK():
		note = fmt.Sprintf("and %d more", r.More)
	case r.More > 0:
		note += fmt.Sprintf(", and %d more", r.More)
	}
	return cut(noteColumns, note)
}

// What returns the object of a row, in the columns that the note leaves.
func (r *row) What() string { return cut(whatColumns-len(r.Note()), r.Object) }

// Place is the position and the color of a row's mark.
type Place struct{ X, Y, Color int }

func (t *Timeline) picture() *picture {
	panels := t.Panels[max(0, len(t.Panels)-maxPanels):]
	p := &picture{Timeline: t, Height: panelsTop, Colors: colors}
	lanes := lanesOf(panels)
	for _, panel := range panels {
		drawn := draw(panel, lanes)
		drawn.Y = p.Height
		p.Height += drawn.Height + panelSpace
		p.Drawn = append(p.Drawn, drawn)
	}
	p.End, p.Height = p.Height+endSpace, p.Height+notesSpace
	return p
}

// Left describes the writes that the picture does not show.
func (p *picture) Left() string {
	left := count(p.Others, "other write")
	if n := len(p.Panels) - len(p.Drawn); n > 0 {
		left += fmt.Sprintf(", and the first %d of %d panels", n, len(p.Panels))
	}
	return left
}

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

// lanesOf returns the lane of each actor, in order of appearance.
func lanesOf(panels []Panel) map[audit.Actor]int {
	lanes := map[audit.Actor]int{}
	for _, panel := range panels {
		for _, e := range panel.Entries {
			if _, ok := lanes[e.actor]; !ok {
				lanes[e.actor] = len(lanes)
			}
		}
	}
	return lanes
}

// draw places the rows of a panel.
func draw(panel Panel, lanes map[audit.Actor]int) *drawnPanel {
	drawn := &drawnPanel{Panel: panel, Height: titleSpace}
	width := min(widestLane, max(1, lanesWidth/len(lanes)))
	for lane := range len(lanes) {
		drawn.Lanes = append(drawn.Lanes, lanesLeft+lane*width+width/2)
	}
	rows, similar := map[*Entry]*row{}, map[string]*row{}
	for _, e := range panel.Entries {
		like := fmt.Sprint(e.actor, e.Verb, e.Path(), e.Code)
		if r := similar[like]; r != nil && len(panel.Entries) > maxRows {
			r.More++
			rows[e] = r
			continue
		}
		lane := lanes[e.actor]
		r := &row{Entry: e, Place: Place{drawn.Lanes[lane], drawn.Height + rowHeight/2, lane % colors}}
		if cause := rows[e.Cause]; cause != nil {
			r.From, r.Arrow = cause.Place, arrow(cause.Place, r.Place, width/2)
		}
		rows[e], similar[like] = r, r
		drawn.Rows = append(drawn.Rows, r)
		drawn.Height += rowHeight
	}
	drawn.Height += endSpace
	return drawn
}

// arrow returns the path from one mark to another mark below it. The path first leaves the cause's
// lane by half a lane, so that it does not cross the marks in that lane.
func arrow(from, to Place, half int) string {
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
