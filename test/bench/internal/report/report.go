// SPDX-License-Identifier: Apache-2.0

// Package report writes the results of the benchmark as a page with a plot.
package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"text/template"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format svg

	"example.com/sample-controller/test/bench/internal/results"
)

// page is the template of the page.
//
//go:embed benchmarks.md.tmpl
var page string

// Write writes benchmarks.md into a folder, and into benchmarks/ in it the plot and a copy of
// the results.
func Write(r *results.Results, folder string) error {
	assets := filepath.Join(folder, "benchmarks")
	if err := os.MkdirAll(assets, 0o755); err != nil {
		return err
	}
	text, err := render(r)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "benchmarks.md"), text, 0o644); err != nil {
		return err
	}
	if len(r.Isolated) > 0 {
		if err := plotThroughput(r, filepath.Join(assets, "throughput.svg")); err != nil {
			return fmt.Errorf("drawing throughput: %w", err)
		}
	}
	return r.Write(filepath.Join(assets, "results.json"))
}

func render(r *results.Results) ([]byte, error) {
	tmpl, err := template.New("page").Funcs(template.FuncMap{
		"names": names, "targets": targets, "rows": rows, "kinds": kinds, "settledSeconds": longestSettled,
		"number": number, "count": count, "seconds": seconds, "perObject": perObject,
	}).Parse(page)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = tmpl.Execute(&text, r)
	return text.Bytes(), err
}

const (
	ours      = "ours"
	unlimited = "upstream-unlimited"
	onRuntime = "controller-runtime"
	bareSame  = "bare-same-writes"
)

// Contenders are the names of all contenders, in the order of the tables.
var Contenders = []string{ours, unlimited, onRuntime, "upstream", bareSame, "bare"}

// names returns those of the contenders that a map has, in order.
func names(of any) []string {
	return slices.DeleteFunc(slices.Clone(Contenders), func(name string) bool {
		return !reflect.ValueOf(of).MapIndex(reflect.ValueOf(name)).IsValid()
	})
}

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

// target is a figure to reach.
type target struct {
	Figure string
	// sign is what the figure has to be, compared with the bound: ≥, ≤ or <.
	sign  string
	bound float64
	// got is the measured figure, the median if there are rounds. It has no measurement
	// if the run lacks one that the figure needs.
	Got spread
}

// Bound formats what to reach.
func (t target) Bound() string {
	if t.sign == "≤" && t.bound == 0 {
		return "0"
	}
	return t.sign + " " + number(t.bound)
}

// Verdict says whether the figure was reached.
func (t target) Verdict() string {
	switch {
	case t.Got.n == 0:
		return "not measured"
	case t.met():
		return "met"
	}
	return "**missed**"
}

// met reports whether the figure was reached.
func (t target) met() bool {
	switch got := t.Got.Median; {
	case t.Got.n == 0:
		return false
	case t.sign == "≥":
		return got >= t.bound
	case t.sign == "<":
		return got < t.bound
	default:
		return got <= t.bound
	}
}

// targets returns all targets, with the figures of a run.
func targets(r *results.Results) []target {
	throughput := func(of string, bound float64, other string) target {
		return target{"throughput / " + of, "≥", bound, ratios(r.Isolated[ours], r.Isolated[other], perSecond)}
	}
	cpu := func(of string, bound float64, other string) target {
		name := fmt.Sprintf("CPU per Foo to %.0f s after convergence / %s", longestSettled(r.Isolated), of)
		return target{name, "≤", bound, ratios(settled(r.Isolated[ours]), settled(r.Isolated[other]), cpuSettled)}
	}
	whole, wholePeer := r.Whole[ours], r.Whole[unlimited]
	foos := r.Memory.Peak[ours]
	list := []target{
		throughput("bare loop with the same writes and watches", 0.95, bareSame),
		{"throughput including events / bare loop with the same writes and watches", "≥", 0.95,
			ratios(r.Isolated[ours], r.Isolated[bareSame], perSecondEvents)},
		throughput("bare loop, no watch, no event", 0.80, "bare"),
		throughput("upstream without limiter", 1.15, unlimited),
		throughput("controller-runtime", 1.65, onRuntime),
		throughput("upstream as shipped", 50, "upstream"),
		cpu("upstream without limiter", 0.40, unlimited),
		cpu("controller-runtime", 0.60, onRuntime),
		{"peak memory / each other controller, at each number of settled Foos", "<", 1, heaviest(r.Memory.Foos, r.Large.Starts)},
		{"peak memory / each other controller, at each number of foreign Deployments", "<", 1, heaviest(r.Memory.Foreign, nil)},
		{"peak memory while Foos converge beside as many foreign Deployments / upstream without limiter", "<", 1,
			ratios(foos, r.Memory.Peak[unlimited], peakMiB)},
		{"throughput with the whole control plane / upstream without limiter", "≥", 1.1, ratios(whole, wholePeer, perSecond)},
		{"time until half of the Foos are available, whole control plane / upstream without limiter", "≤", 0.7,
			ratios(whole, wholePeer, halfSeconds)},
		{"writes per new Foo without events, whole control plane", "≤", 3,
			median(whole, func(t results.Trial) float64 { return writes(t) - events(t) })},
		{"events per new Foo, whole control plane", "≤", 2, median(whole, events)},
	}
	if rest, measured := r.Rest[ours]; measured {
		list = append(list,
			target{fmt.Sprintf("calls over %.0f s at rest", rest.Seconds), "≤", 0, summarize(rest.Calls.Total())},
			target{"writes after a restart with all Foos settled", "≤", 0, summarize(r.Restart[ours].Calls.Writes())})
	}
	return list
}

func events(t results.Trial) float64 { return t.Calls["create events"] + t.Calls["patch events"] }

// ratios summarizes the ratio of two contenders in each round. The trials of a round run
// within minutes of each other, whereas a shared machine may be half as fast in the next
// round.
func ratios(a, b []results.Trial, of figure) spread {
	var found []float64
	for round := range min(len(a), len(b)) {
		if of(a[round]) > 0 && of(b[round]) > 0 {
			found = append(found, of(a[round])/of(b[round]))
		}
	}
	return summarize(found...)
}

// median summarizes trials as if the median were the only measurement.
func median(trials []results.Trial, of figure) spread {
	if len(trials) == 0 {
		return spread{}
	}
	return summarize(spreadOf(trials, of).Median)
}

// heaviest returns the highest ratio of our peak memory to that of another controller, of all
// numbers of objects.
func heaviest(holdings map[string][]results.Holding, starts map[string]results.Start) spread {
	var found []float64
	for _, peer := range []string{unlimited, onRuntime} {
		for _, mine := range holdings[ours] {
			for _, that := range holdings[peer] {
				if that.Objects == mine.Objects {
					found = append(found, mine.PeakMiB/that.PeakMiB)
				}
			}
		}
		mine, measured := starts[ours]
		if that, both := starts[peer]; measured && both {
			found = append(found, mine.PeakMiB/that.PeakMiB)
		}
	}
	if len(found) == 0 {
		return spread{}
	}
	return summarize(summarize(found...).max)
}
