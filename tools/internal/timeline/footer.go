// SPDX-License-Identifier: Apache-2.0

// The legend below a picture.

package timeline

// footer places the legend, and notes about the writes that are not drawn.
func (c *composer) footer(notes []string) {
	x, y := 2*margin, c.height+rowHeight/2
	for _, item := range []struct {
		shape   shape
		refused bool
		text    string
	}{
		{made, false, "create"},
		{altered, false, "update, patch"},
		{reported, false, "status"},
		{ended, false, "delete"},
		{made, true, "refused"},
	} {
		c.marks = append(c.marks, mark{x, y, item.shape, legendColour, item.refused, "", none})
		x += 2 * radius
		x += c.text(x, y-lineHeight(fontSize)/2, c.width-margin-x, fontSize, "dim", item.text, monospaced) + 2*margin
	}
	for _, item := range []struct {
		guessed bool
		text    string
	}{{false, "cause to effect"}, {true, "guessed"}} {
		c.arrows = append(c.arrows, arrow{x - 4, y - 14, x - 4, x + 26, y, legendColour, item.guessed})
		x += 26
		x += c.text(x, y-lineHeight(fontSize)/2, c.width-margin-x, fontSize, "dim", item.text, monospaced) + 2*margin
	}
	y += rowHeight
	notes = append([]string{"Times are in ms since the first write of the panel, by the API server's clock."}, notes...)
	for _, note := range notes {
		for _, text := range wrapped(clean(note), c.width-3*margin, fontSize) {
			c.text(1.5*margin, y-lineHeight(fontSize)/2, c.width-3*margin, fontSize, "dim", text, monospaced)
			y += rowHeight
		}
	}
	c.height = y
}

// legendColour is the colour of marks in the legend, which belong to no actor.
const legendColour = -1
