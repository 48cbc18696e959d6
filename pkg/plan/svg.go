package plan

import (
	"errors"
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colors of TTFT, of TPOT and of the knee.
var (
	ttftColor = color.RGBA{R: 31, G: 119, B: 180, A: 255}
	tpotColor = color.RGBA{R: 214, G: 39, B: 40, A: 255}
	kneeColor = color.RGBA{R: 90, G: 90, B: 90, A: 255}
)

// SVG draws the load curve: p99 of TTFT and TPOT over the load on a logarithmic scale. Loads that the fleet does not
// serve within the conditions have a cross, and a dashed line marks the knee.
func (a *Answer) SVG(out io.Writer) error {
	if a.Best == nil {
		return errors.New("no fleet is feasible, so there is no load curve to draw")
	}
	p := plot.New()
	b := a.Best
	p.Title.Text = fmt.Sprintf("%s: %d x %s", gpus(b.GPUs), b.Replicas, settings(b.GPU, b.Set))
	p.X.Label.Text = fmt.Sprintf("load, relative to the workload (knee at %g)", a.Knee)
	p.Y.Label.Text = "p99, ms"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for _, c := range []struct {
		name  string
		color color.Color
		of    func(*Fleet) float64
	}{
		{"TTFT", ttftColor, func(f *Fleet) float64 { return f.TTFTp99MS }},
		{"TPOT", tpotColor, func(f *Fleet) float64 { return f.TPOTp99MS }},
	} {
		if err := a.drawCurve(p, c.name, c.color, c.of); err != nil {
			return err
		}
	}
	if !(p.Y.Min > 0) {
		return errors.New("no load has a TTFT or TPOT above 0, so there is no load curve to draw")
	}
	knee, err := plotter.NewLine(plotter.XYs{{X: a.Knee, Y: p.Y.Min}, {X: a.Knee, Y: p.Y.Max}})
	if err != nil {
		return err
	}
	knee.Color, knee.Dashes = kneeColor, []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(knee)
	canvas := vgsvg.New(7*vg.Inch, 4*vg.Inch)
	p.Draw(draw.New(canvas))
	_, err = canvas.WriteTo(out)
	return err
}

// drawCurve draws a latency of the curve, where it is above 0.
func (a *Answer) drawCurve(p *plot.Plot, name string, c color.Color, of func(*Fleet) float64) error {
	var all, met, missed plotter.XYs
	for _, f := range a.Curve {
		at := plotter.XY{X: f.Load, Y: of(f)}
		if !(at.Y > 0) {
			continue
		}
		if all = append(all, at); f.Feasible {
			met = append(met, at)
		} else {
			missed = append(missed, at)
		}
	}
	if len(all) == 0 {
		return nil
	}
	line, err := plotter.NewLine(all)
	if err != nil {
		return err
	}
	line.Color = c
	p.Add(line)
	p.Legend.Add(name, line)
	for _, points := range []struct {
		at    plotter.XYs
		glyph draw.GlyphDrawer
	}{{met, draw.CircleGlyph{}}, {missed, draw.CrossGlyph{}}} {
		if len(points.at) == 0 {
			continue
		}
		marks, err := plotter.NewScatter(points.at)
		if err != nil {
			return err
		}
		marks.Color, marks.Shape = c, points.glyph
		p.Add(marks)
	}
	return nil
}
