// Package chart draws lines over an axis: as SVG for papers, and as text for terminals.
package chart

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Chart is a figure with lines.
type Chart struct {
	Title string
	X, Y  Axis
	Lines []Line
	Rules []Rule
	// Columns name the Numbers of the lines, which only texts show.
	Columns []string
	// LegendInside puts the legend of an SVG at the top left of the lines, and not to their right.
	LegendInside bool
}

// Axis is one of the two axes.
type Axis struct {
	Label string
	// Log is a logarithmic scale. All values must be above 0.
	Log bool
	// Percent: values are shares from 0 to 1.
	Percent bool
	// Zero: the axis begins at 0.
	Zero bool
}

// Line is a line with its name.
type Line struct {
	Name string
	// Points have ascending X. A Y that is NaN is a gap.
	Points []Point
	// Step: a Y holds until the X of the next point. The last point marks the end.
	Step bool
	// Peak: where a column of a text has several steps, it shows their largest Y, not the mean.
	Peak bool
	// Numbers are those of the line under Columns; NaN is none.
	Numbers []float64
}

// Point is a point of a line.
type Point struct {
	X, Y float64
	Mark Mark
}

// Mark is a symbol at a point; 0 is none.
type Mark int

// The marks.
const (
	Circle Mark = 1 + iota
	Cross
)

// Rule is a dashed vertical line at X. It has the color of a line, or gray if Line is not one.
type Rule struct {
	X    float64
	Line int
}

// check returns an error if there is nothing to draw.
func (c *Chart) check() error {
	for i := range c.Lines {
		if len(c.Lines[i].segments()) > 0 {
			return nil
		}
	}
	return errors.New("there is nothing to draw")
}

// segments returns the parts of the line between gaps.
func (l *Line) segments() (all [][]Point) {
	var segment []Point
	for i, p := range l.Points {
		switch {
		case !math.IsNaN(p.Y):
			segment = append(segment, p)
			continue
		case len(segment) > 0 && l.Step: // the last value holds until the gap
			segment = append(segment, Point{X: p.X, Y: l.Points[i-1].Y})
		}
		if len(segment) > 0 {
			all = append(all, segment)
		}
		segment = nil
	}
	if len(segment) > 0 {
		all = append(all, segment)
	}
	return all
}

// extent returns the smallest and the largest X of all lines.
func (c *Chart) extent() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range c.Lines {
		for _, p := range c.Lines[i].Points {
			low, high = min(low, p.X), max(high, p.X)
		}
	}
	return low, high
}

// short writes three significant digits, with k, M or G for thousands.
func short(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	unit := ""
	for _, next := range []string{"k", "M", "G"} {
		if math.Abs(x) < 9999.5 {
			break
		}
		x, unit = x/1000, next
	}
	digits := 0
	for limit := 100.0; digits < 12 && math.Abs(x) < limit*0.9995; limit /= 10 {
		digits++
	}
	text := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + unit
}
