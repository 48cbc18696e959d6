package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of an SVG, and the space between lines and legend.
const (
	svgWidth  = 7 * vg.Inch
	svgHeight = 4 * vg.Inch
	legendGap = 0.15 * vg.Inch
)

// colors are those of the lines, in turn. The dashes change after each turn.
var colors = []color.RGBA{
	{R: 31, G: 119, B: 180, A: 255}, {R: 214, G: 39, B: 40, A: 255}, {R: 44, G: 160, B: 44, A: 255},
	{R: 148, G: 103, B: 189, A: 255}, {R: 255, G: 127, B: 14, A: 255}, {R: 140, G: 86, B: 75, A: 255},
	{R: 227, G: 119, B: 194, A: 255}, {R: 23, G: 155, B: 170, A: 255},
}

var gray = color.RGBA{R: 90, G: 90, B: 90, A: 255}

// SVG draws the chart. It is an error if there is nothing to draw.
func (c *Chart) SVG(out io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	p := plot.New()
	p.Title.Text = c.Title
	c.X.set(&p.X)
	c.Y.set(&p.Y)
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i := range c.Lines {
		if err := c.Lines[i].add(p, colors[i%len(colors)]); err != nil {
			return err
		}
	}
	if c.Y.Zero {
		p.Y.Min = 0
	}
	low, high := p.Y.Min, p.Y.Max
	for _, r := range c.Rules {
		rule, err := plotter.NewLine(plotter.XYs{{X: r.X, Y: low}, {X: r.X, Y: high}})
		if err != nil {
			return err
		}
		rule.Color, rule.Dashes = gray, []vg.Length{vg.Points(4), vg.Points(3)}
		if r.Line >= 0 && r.Line < len(c.Lines) {
			rule.Color = colors[r.Line%len(colors)]
		}
		p.Add(rule)
	}
	canvas := vgsvg.New(svgWidth, svgHeight)
	c.draw(p, draw.New(canvas))
	_, err := canvas.WriteTo(out)
	return err
}

// draw draws the plot with its legend, which a single line does not need.
func (c *Chart) draw(p *plot.Plot, on draw.Canvas) {
	if c.LegendInside {
		p.Draw(on)
		return
	}
	legend := p.Legend
	p.Legend = plot.NewLegend()
	if len(c.Lines) < 2 {
		p.Draw(on)
		return
	}
	on.SetColor(p.BackgroundColor)
	on.Fill(on.Rectangle.Path())
	size := legend.Rectangle(on).Size()
	p.Draw(draw.Crop(on, 0, -size.X-legendGap, 0, 0))
	legend.Left, legend.Top = true, true
	legend.Draw(draw.Crop(on, svgWidth-size.X, 0, 0, -p.Title.TextStyle.FontExtents().Height))
}

// set sets up an axis.
func (a Axis) set(axis *plot.Axis) {
	axis.Label.Text = a.Label
	switch {
	case a.Log:
		axis.Scale, axis.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
	case a.Percent:
		axis.Tick.Marker = plot.TickerFunc(percentTicks)
	}
}

// add adds the line and its marks.
func (l *Line) add(p *plot.Plot, c color.Color) error {
	for i, segment := range l.segments() {
		line, err := plotter.NewLine(xys(segment))
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		line.Color = c
		if l.Step {
			line.StepStyle = plotter.PostStep
		}
		p.Add(line)
		if i == 0 {
			p.Legend.Add(l.Name, line)
		}
	}
	for _, m := range []struct {
		mark  Mark
		glyph draw.GlyphDrawer
	}{{Circle, draw.CircleGlyph{}}, {Cross, draw.CrossGlyph{}}} {
		var marked []Point
		for _, q := range l.Points {
			if q.Mark == m.mark {
				marked = append(marked, q)
			}
		}
		if len(marked) == 0 {
			continue
		}
		marks, err := plotter.NewScatter(xys(marked))
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		marks.Color, marks.Shape = c, m.glyph
		p.Add(marks)
	}
	return nil
}

func xys(points []Point) plotter.XYs {
	all := make(plotter.XYs, len(points))
	for i, p := range points {
		all[i] = plotter.XY{X: p.X, Y: p.Y}
	}
	return all
}

// percentTicks are ticks at each fifth.
func percentTicks(low, high float64) (ticks []plot.Tick) {
	for i := range 6 {
		ticks = append(ticks, plot.Tick{Value: float64(i) / 5, Label: fmt.Sprint(20*i, " %")})
	}
	return ticks
}

// logTicks are ticks at each digit of each power of ten. Those at 1, 2 and 5 have labels or, if there are many, only
// those at 1.
func logTicks(low, high float64) (ticks []plot.Tick) {
	few := high < 500*low
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
		for digit := 1.0; digit < 10; digit++ {
			t := plot.Tick{Value: decade * digit}
			if digit == 1 || few && (digit == 2 || digit == 5) {
				t.Label = short(t.Value)
			}
			if t.Value >= low && t.Value <= high {
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}
