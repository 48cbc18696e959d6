package plan

import (
	"errors"
	"fmt"
	"io"

	"blis/pkg/chart"
)

// SVG draws the load curve: p99 of TTFT and TPOT over the load on a logarithmic scale. Loads that the fleet does not
// serve within the conditions have a cross, and a dashed line marks the knee.
func (a *Answer) SVG(out io.Writer) error {
	if a.Best == nil {
		return errors.New("no fleet is feasible, so there is no load curve to draw")
	}
	b := a.Best
	c := chart.Chart{Title: fmt.Sprintf("%s: %d x %s", gpus(b.GPUs), b.Replicas, settings(b.GPU, b.Set)),
		X:     chart.Axis{Label: fmt.Sprintf("load, relative to the workload (knee at %g)", a.Knee)},
		Y:     chart.Axis{Label: "p99 of all served requests, ms", Log: true},
		Rules: []chart.Rule{{X: a.Knee, Line: -1}}, LegendInside: true}
	for _, l := range []struct {
		name string
		of   func(*Fleet) float64
	}{
		{"TTFT", func(f *Fleet) float64 { return f.TTFTp99MS }},
		{"TPOT", func(f *Fleet) float64 { return f.TPOTp99MS }},
	} {
		if points := a.curve(l.of); len(points) > 0 {
			c.Lines = append(c.Lines, chart.Line{Name: l.name, Points: points})
		}
	}
	if len(c.Lines) == 0 {
		return errors.New("no load has a TTFT or TPOT above 0, so there is no load curve to draw")
	}
	return c.SVG(out)
}

// curve returns the points of a latency of the curve, where it is above 0.
func (a *Answer) curve(of func(*Fleet) float64) (points []chart.Point) {
	for _, f := range a.Curve {
		p := chart.Point{X: f.Load, Y: of(f), Mark: chart.Cross}
		if f.Feasible {
			p.Mark = chart.Circle
		}
		if p.Y > 0 {
			points = append(points, p)
		}
	}
	return points
}
