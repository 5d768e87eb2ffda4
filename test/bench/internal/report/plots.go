// SPDX-License-Identifier: Apache-2.0

// The plots: which there are, their common style, and bar plots.

package report

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format svg

	"example.com/sample-controller/test/bench/internal/results"
	"example.com/sample-controller/test/bench/internal/stats"
)

const (
	width     = 18 * vg.Centimeter
	barHeight = 0.9 * vg.Centimeter
	barWidth  = 0.28 * vg.Centimeter
	margin    = 0.8 * vg.Centimeter

	// fontFamily is what the library writes. Not every viewer has this font, and some
	// then use one with serifs.
	fontFamily   = "font-family:Liberation Sans;"
	fontFamilies = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"
)

// drawing is a plot and its file.
type drawing struct {
	file   string
	height vg.Length
	plot   *plot.Plot
	err    error
}

// writePlots draws the plots that have figures, and removes the files of the others.
func writePlots(r *results.Results, folder string) error {
	var errs []error
	for _, d := range []drawing{throughputPlot(r), cpuPlot(r)} {
		path := filepath.Join(folder, d.file)
		if d.plot == nil || d.err != nil {
			_ = os.Remove(path) // it may not exist
			errs = append(errs, d.err)
			continue
		}
		errs = append(errs, d.write(path))
	}
	return errors.Join(errs...)
}

// write writes a plot to a file, with a margin for viewers whose fonts are wider.
func (d drawing) write(path string) error {
	canvas, err := draw.NewFormattedCanvas(width, d.height, "svg")
	if err != nil {
		return err
	}
	d.plot.Draw(draw.Crop(draw.New(canvas), margin, -margin, margin/2, -margin/2))
	var content bytes.Buffer
	if _, err := canvas.WriteTo(&content); err != nil {
		return err
	}
	return os.WriteFile(path, bytes.ReplaceAll(content.Bytes(), []byte(fontFamily), []byte(fontFamilies)), 0o644)
}

// newPlot returns a plot with a sans-serif font.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	for _, style := range []*plot.Axis{&p.X, &p.Y} {
		style.Label.TextStyle.Font.Variant = "Sans"
		style.Tick.Label.Font.Variant = "Sans"
		style.Tick.Marker = plot.TickerFunc(ticks)
	}
	p.Title.TextStyle.Font.Variant, p.Legend.TextStyle.Font.Variant = "Sans", "Sans"
	p.Title.Padding = 0.3 * vg.Centimeter
	return p
}

// ticks returns the library's ticks, with no more digits than needed.
func ticks(low, high float64) []plot.Tick {
	marks := plot.DefaultTicks{}.Ticks(low, high)
	for i, mark := range marks {
		if mark.Label != "" {
			marks[i].Label = strconv.FormatFloat(mark.Value, 'f', -1, 64)
		}
	}
	return marks
}

// bars is a set of bars with the same meaning, one for each name.
type bars struct {
	meaning string
	of      []stats.Spread
}

// barPlot draws horizontal bars, the first name on top, with lines from minimum to
// maximum.
func barPlot(file, title, axis string, names []string, sets ...bars) drawing {
	var labels []string
	for _, name := range slices.Backward(names) {
		labels = append(labels, name+"   ") // a viewer's font may be wider than ours
	}
	p := newPlot(title, axis, "")
	p.X.Min = 0
	p.NominalY(labels...)
	d := drawing{file: file, height: barHeight*vg.Length(len(names)) + 3*vg.Centimeter, plot: p}
	for i, set := range sets {
		of := slices.Clone(set.of)
		slices.Reverse(of)
		offset := barWidth * vg.Length(float64(len(sets)-1)/2-float64(i))
		if d.err == nil {
			d.err = addBars(p, of, offset, i, set.meaning)
		}
	}
	p.X.Max *= 1.05
	if len(sets) > 1 {
		p.X.Max *= 1.3 // room for the legend
	}
	return d
}

func addBars(p *plot.Plot, of []stats.Spread, offset vg.Length, color int, meaning string) error {
	values := make(plotter.Values, len(of))
	for i, s := range of {
		values[i] = s.Median
	}
	chart, err := plotter.NewBarChart(values, barWidth)
	if err != nil {
		return err
	}
	chart.Horizontal, chart.Offset, chart.Color, chart.LineStyle.Width = true, offset, plotutil.Color(color), 0
	p.Add(chart)
	if meaning == "" {
		p.Add(newWhiskers(of))
		return nil
	}
	p.Legend.Add(meaning+"   ", chart)
	p.Legend.Top = true // the bars at the top are short, because ours come first
	return nil
}

// whiskers are the ranges of bars.
type whiskers []stats.Spread

func newWhiskers(of []stats.Spread) plot.Plotter {
	lines, err := plotter.NewXErrorBars(whiskers(of))
	if err != nil {
		return plotter.NewGrid() // there is nothing to draw
	}
	return lines
}

// Len returns the number of bars.
func (w whiskers) Len() int { return len(w) }

// XY returns the end of a bar.
func (w whiskers) XY(i int) (x, y float64) { return w[i].Median, float64(i) }

// XError returns the distances of minimum and maximum from there.
func (w whiskers) XError(i int) (low, high float64) {
	return w[i].Median - w[i].Min, w[i].Max - w[i].Median
}

func throughputPlot(r *results.Results) drawing {
	const file = "throughput.svg"
	names := contenders(r.Isolated)
	if len(names) == 0 {
		return drawing{file: file}
	}
	return barPlot(file, "Waiting Foos that converge, without kube-controller-manager", "Foos/s, median, minimum and maximum", names, figures(r.Isolated, names, "", perSecond))
}

func cpuPlot(r *results.Results) drawing {
	const file = "cpu.svg"
	names := contenders(r.Rest) // those that were measured after convergence
	if len(names) == 0 {
		return drawing{file: file}
	}
	watched := map[string][]results.Trial{}
	for _, name := range names {
		watched[name] = settled(r.Isolated[name])
	}
	return barPlot(file, "CPU of the process", "ms per Foo, median", names,
		figures(r.Isolated, names, "to convergence", cpuConverged), figures(watched, names, number(settledSeconds(r))+" s later", cpuSettled))
}

func figures(of map[string][]results.Trial, names []string, meaning string, figure func(results.Trial) float64) bars {
	set := bars{meaning: meaning}
	for _, name := range names {
		set.of = append(set.of, spread(of[name], figure))
	}
	return set
}
