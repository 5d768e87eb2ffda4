// SPDX-License-Identifier: Apache-2.0

// Colours, fonts and sizes.

package timeline

import (
	"fmt"
	"strings"
)

// palette is one set of colours.
type palette struct {
	ground, panel, lane, lead, text, dim, bad string
	// actors are the colours of the lanes, in order. Each has enough contrast to the
	// panel's background.
	actors [colours]string
}

func light() palette {
	return palette{
		ground: "#ffffff", panel: "#f6f8fa", lane: "#d1d9e0", lead: "#e4e8ec", text: "#1f2328", dim: "#59636e", bad: "#cf222e",
		actors: [colours]string{"#9a6700", "#0969da", "#8250df", "#1a7f37", "#bf3989", "#0b7285", "#bc4c00", "#57606a"},
	}
}

func dark() palette {
	return palette{
		ground: "#0d1117", panel: "#161b22", lane: "#3d444d", lead: "#262c36", text: "#f0f6fc", dim: "#9198a1", bad: "#ff7b72",
		actors: [colours]string{"#e3b341", "#58a6ff", "#bc8cff", "#3fb950", "#f778ba", "#39c5cf", "#f0883e", "#b1bac4"},
	}
}

// stylesheet returns the picture's stylesheet, with the light palette, and the dark one
// for readers who prefer it.
func stylesheet() string {
	return `.t{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;white-space:pre}
.h{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;font-weight:600}
.b{font-weight:600}
.arrow,.lane,.lead,.pause,.cross{fill:none}
.lane{stroke-width:1}
.lead{stroke-width:1}
.pause{stroke-width:1;stroke-dasharray:2 4}
.arrow{stroke-width:1.3}
.guessed{stroke-dasharray:4 3}
.mark{stroke-width:1.5}
.cross{stroke-width:2.6;stroke-linecap:round}
.refused .cross{stroke-width:1.5}
` + light().rules("") + "@media (prefers-color-scheme:dark){\n" + dark().rules("") + "}\n"
}

// rules returns the rules of the stylesheet that set colours.
func (p palette) rules(indent string) string {
	var b strings.Builder
	rule := func(format string, args ...any) { fmt.Fprintf(&b, indent+format+"\n", args...) }
	rule(".ground{fill:%s}", p.ground)
	rule(".panel{fill:%s;stroke:%s}", p.panel, p.lane)
	rule("text{fill:%s}", p.text)
	rule(".dim,.num{fill:%s}", p.dim)
	rule(".bad{fill:%s}", p.bad)
	rule(".lane,.pause{stroke:%s}", p.lane)
	rule(".lead{stroke:%s}", p.lead)
	paint := func(class, colour string) {
		rule("tspan.%s,.mark.%s,.head.%s{fill:%s}", class, class, class, colour)
		rule(".arrow.%s,.mark.%s .cross{stroke:%s}", class, class, colour)
	}
	for i, colour := range p.actors {
		paint(fmt.Sprintf("c%d", i), colour)
	}
	paint("cx", p.dim)
	rule(".refused{fill:%s;stroke:%s}", p.panel, p.bad)
	rule(".refused .cross{stroke:%s}", p.bad)
	return b.String()
}
