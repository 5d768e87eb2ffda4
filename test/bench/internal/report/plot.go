// SPDX-License-Identifier: Apache-2.0

// The plot of throughput.

package report

import (
	"bytes"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format svg

	"example.com/sample-controller/test/bench/internal/results"
)

const (
	width     = 18 * vg.Centimeter
	barHeight = 0.9 * vg.Centimeter
	barWidth  = 0.28 * vg.Centimeter
	margin    = 0.8 * vg.Centimeter // for viewers whose fonts are wider

	// fontFamily is what the library writes. Not every viewer has this font, and some
	// then use one with serifs.
	fontFamily   = "font-family:Liberation Sans;"
	fontFamilies = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"
)

// plotThroughput draws the Foos per second of each contender into a file: horizontal bars,
// the first contender on top, with lines from minimum to maximum.
func plotThroughput(r *results.Results, path string) error {
	contenders := names(r.Isolated)
	slices.Reverse(contenders)
	var labels []string
	var medians plotter.Values
	var ranges whiskers
	for _, name := range contenders {
		labels = append(labels, name+"   ") // a viewer's font may be wider than ours
		s := spreadOf(r.Isolated[name], perSecond)
		medians, ranges = append(medians, s.Median), append(ranges, s)
	}
	chart, err := plotter.NewBarChart(medians, barWidth)
	if err != nil {
		return err
	}
	chart.Horizontal, chart.Color, chart.LineStyle.Width = true, plotutil.Color(0), 0
	lines, err := plotter.NewXErrorBars(ranges)
	if err != nil {
		return err
	}
	p := newPlot("Waiting Foos that converge, without kube-controller-manager", "Foos/s, median, minimum and maximum")
	p.NominalY(labels...)
	p.Add(chart, lines)
	p.X.Min, p.X.Max = 0, p.X.Max*1.05
	return write(p, barHeight*vg.Length(len(contenders))+3*vg.Centimeter, path)
}

func write(p *plot.Plot, height vg.Length, path string) error {
	canvas, err := draw.NewFormattedCanvas(width, height, "svg")
	if err != nil {
		return err
	}
	p.Draw(draw.Crop(draw.New(canvas), margin, -margin, margin/2, -margin/2))
	var content bytes.Buffer
	if _, err := canvas.WriteTo(&content); err != nil {
		return err
	}
	return os.WriteFile(path, bytes.ReplaceAll(content.Bytes(), []byte(fontFamily), []byte(fontFamilies)), 0o644)
}

// newPlot returns a plot with a sans-serif font.
func newPlot(title, x string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, x
	for _, style := range []*plot.Axis{&p.X, &p.Y} {
		style.Label.TextStyle.Font.Variant = "Sans"
		style.Tick.Label.Font.Variant = "Sans"
	}
	p.Title.TextStyle.Font.Variant = "Sans"
	p.Title.Padding = 0.3 * vg.Centimeter
	return p
}

// whiskers are the ranges of bars.
type whiskers []spread

// Len returns the number of bars.
func (w whiskers) Len() int { return len(w) }

// XY returns the end of a bar.
func (w whiskers) XY(i int) (x, y float64) { return w[i].Median, float64(i) }

// XError returns the distances of minimum and maximum from there.
func (w whiskers) XError(i int) (low, high float64) {
	return w[i].Median - w[i].min, w[i].max - w[i].Median
}
