// SPDX-License-Identifier: Apache-2.0

// Line plots.

package report

import (
	"maps"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"

	"example.com/sample-controller/test/bench/internal/results"
)

// addLine draws points joined by a line.
func addLine(p *plot.Plot, number int, meaning string, points plotter.XYs) error {
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, dots.Color = plotutil.Color(number), plotutil.Color(number)
	dots.Shape = plotutil.Shape(number)
	p.Add(line, dots)
	p.Legend.Add(meaning, line, dots)
	return nil
}

// linePlot draws one line for each name with points.
func linePlot(file string, p *plot.Plot, names []string, points func(name string) plotter.XYs) drawing {
	d := drawing{file: file, height: chart, plot: p}
	p.Add(plotter.NewGrid())
	drawn := 0
	for i, name := range names {
		if xys := points(name); len(xys) > 0 && d.err == nil {
			d.err = addLine(p, i, name, xys)
			drawn++
		}
	}
	if drawn == 0 {
		return drawing{file: file}
	}
	p.X.Max *= 1.05
	p.Y.Min = 0
	p.Y.Max *= 1.25 // room for the legend
	p.Legend.Top, p.Legend.Left = true, true
	return d
}

func sweepPlot(r *results.Results) drawing {
	p := newPlot("Waiting Foos that converge, by concurrency", "workers of this controller, goroutines of the bare loop", "Foos/s")
	p.X.Scale = plot.LogScale{}
	names := contenders(r.Sweep)
	var ticks plot.ConstantTicks
	for _, name := range names {
		for _, n := range slices.Sorted(maps.Keys(r.Sweep[name])) {
			ticks = append(ticks, plot.Tick{Value: float64(n), Label: strconv.Itoa(n)})
		}
	}
	p.X.Tick.Marker = ticks
	return linePlot("sweep.svg", p, names, func(name string) (points plotter.XYs) {
		for _, n := range slices.Sorted(maps.Keys(r.Sweep[name])) {
			points = append(points, plotter.XY{X: float64(n), Y: spread(r.Sweep[name][n], perSecond).Median})
		}
		return points
	})
}

func latencyPlot(r *results.Results) drawing {
	p := newPlot("From Foo acknowledged to Deployment created, p99", "share of the bare loop's limit, %", "ms")
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	d := linePlot("latency.svg", p, contenders(r.Latency), func(name string) (points plotter.XYs) {
		for _, load := range r.Latency[name] {
			if load.Created.N > 0 {
				points = append(points, plotter.XY{X: load.Share * 100, Y: load.Created.P99})
			}
		}
		return points
	})
	p.Y.Min = 1   // a logarithmic scale has no 0
	p.Y.Max *= 10 // room for the legend
	return d
}

func memoryPlot(r *results.Results, foreign bool) drawing {
	file, what := "memory-foos.svg", "settled Foos, each with its Deployment"
	if foreign {
		file, what = "memory-foreign.svg", "Deployments unrelated to any Foo"
	}
	p := newPlot("Peak memory after a start", what, "MiB")
	return linePlot(file, p, contenders(r.Memory), func(name string) (points plotter.XYs) {
		holdings := r.Memory[name].Foos
		if foreign {
			holdings = r.Memory[name].Foreign
		}
		for _, holding := range holdings {
			points = append(points, plotter.XY{X: float64(holding.Objects), Y: holding.PeakMiB})
		}
		return points
	})
}
