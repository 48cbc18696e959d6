package latency

import (
	"errors"
	"fmt"

	"blis/pkg/des"
)

// Table is a grid of measured step times. Real step times have concave and stepped parts that a
// linear model cannot follow.
type Table struct {
	// The axes: prefill tokens of a step, decode sequences, and their total context tokens (see Batch).
	// Each axis rises strictly and has at least one point; the times do not depend on an axis of one
	// point.
	PrefillTokens   []int64 `yaml:"prefill_tokens"   json:"prefill_tokens"`
	DecodeSequences []int64 `yaml:"decode_sequences" json:"decode_sequences"`
	ContextTokens   []int64 `yaml:"context_tokens"   json:"context_tokens"`
	// StepUS has a time in µs for each point of the grid: context varies fastest, prefill slowest.
	// Times never decrease along an axis.
	StepUS []float64 `yaml:"step_us"          json:"step_us"`
}

// table is the model of a Table: linear between neighboring points, in all three axes. Below an
// axis's first point it is constant. Beyond the last point it continues with the slope of the last
// two, raised to at least the slope at less of the other two axes. Otherwise converging slopes
// would cross far outside, and more work would take less time.
type table struct {
	overhead
	axes   [3][]float64
	points []float64
	// slopes are the µs per unit beyond the end of an axis, on the grid of the other two axes; nil for
	// an axis of one point.
	slopes [3][]float64
}

const (
	prefillAxis = iota
	decodeAxis
	contextAxis
)

func newTable(c Coefficients) (Model, error) {
	if err := c.checkAlpha(); err != nil {
		return nil, err
	}
	if c.Table == nil {
		return nil, errors.New("the latency model table needs a table")
	}
	if err := c.Table.check(); err != nil {
		return nil, err
	}
	m := &table{overhead: newOverhead(c.Alpha), points: c.Table.StepUS}
	for i, axis := range c.Table.axes() {
		for _, v := range axis.points {
			m.axes[i] = append(m.axes[i], float64(v))
		}
	}
	for i := range m.axes {
		m.slopes[i] = m.endSlopes(i)
	}
	return m, nil
}

// endSlopes returns the slopes at the end of an axis, raised to the largest slope at or below in
// the other two axes.
func (m *table) endSlopes(axis int) []float64 {
	x := m.axes[axis]
	last := len(x) - 1
	if last == 0 {
		return nil
	}
	rows, columns := otherAxes(axis)
	width := len(m.axes[columns])
	slopes := make([]float64, len(m.axes[rows])*width)
	for i := range slopes {
		var p [3]int
		p[axis], p[rows], p[columns] = last, i/width, i%width
		end := m.point(p)
		p[axis]--
		slope := (end - m.point(p)) / (x[last] - x[last-1])
		if p[rows] > 0 {
			slope = max(slope, slopes[i-width])
		}
		if p[columns] > 0 {
			slope = max(slope, slopes[i-1])
		}
		slopes[i] = slope
	}
	return slopes
}

// otherAxes returns the two axes other than axis, the slower one first.
func otherAxes(axis int) (rows, columns int) {
	switch axis {
	case prefillAxis:
		return decodeAxis, contextAxis
	case decodeAxis:
		return prefillAxis, contextAxis
	}
	return prefillAxis, decodeAxis
}

func (m *table) point(p [3]int) float64 {
	return m.points[(p[0]*len(m.axes[1])+p[1])*len(m.axes[2])+p[2]]
}

// gridPosition is the position of a value on an axis: a fraction of the way from point low to point
// high, or excess units beyond the last.
type gridPosition struct {
	low, high        int
	fraction, excess float64
}

func locate(axis []float64, v float64) gridPosition {
	last := len(axis) - 1
	if v <= axis[0] {
		return gridPosition{}
	}
	if v >= axis[last] {
		return gridPosition{low: last, high: last, excess: v - axis[last]}
	}
	low, high := 0, last // axis[low] <= v < axis[high]
	for high-low > 1 {
		if middle := (low + high) >> 1; axis[middle] <= v {
			low = middle
		} else {
			high = middle
		}
	}
	return gridPosition{low: low, high: high, fraction: (v - axis[low]) / (axis[high] - axis[low])}
}

// interpolate returns the value at a fraction of the way from a to b: exactly a or b at the ends,
// never above b.
func interpolate(a, b, fraction float64) float64 { return min(b, a+float64(fraction*(b-a))) }

// bilinear interpolates in a grid of rows of the given width that starts at offset.
func bilinear(grid []float64, offset, width int, row, column gridPosition) float64 {
	a, b := grid[offset+row.low*width:], grid[offset+row.high*width:]
	return interpolate(interpolate(a[column.low], a[column.high], column.fraction),
		interpolate(b[column.low], b[column.high], column.fraction), row.fraction)
}

func (m *table) Step(b Batch) des.Time {
	prefill := locate(m.axes[prefillAxis], float64(b.Prefill+b.Drafts))
	decode := locate(m.axes[decodeAxis], float64(b.Decode))
	context := locate(m.axes[contextAxis], float64(b.Context))
	width := len(m.axes[contextAxis])
	size := len(m.axes[decodeAxis]) * width
	us := bilinear(m.points, prefill.low*size, width, decode, context)
	if prefill.fraction > 0 {
		us = interpolate(us, bilinear(m.points, prefill.high*size, width, decode, context), prefill.fraction)
	}
	if prefill.excess > 0 && m.slopes[prefillAxis] != nil {
		us += float64(prefill.excess * bilinear(m.slopes[prefillAxis], 0, width, decode, context))
	}
	if decode.excess > 0 && m.slopes[decodeAxis] != nil {
		us += float64(decode.excess * bilinear(m.slopes[decodeAxis], 0, width, prefill, context))
	}
	if context.excess > 0 && m.slopes[contextAxis] != nil {
		us += float64(context.excess * bilinear(m.slopes[contextAxis], 0, len(m.axes[decodeAxis]), prefill, decode))
	}
	return max(1, micros(us))
}

// axis is an axis with its name in files.
type axis struct {
	name   string
	points []int64
}

func (t *Table) axes() [3]axis {
	return [3]axis{
		{"prefill_tokens", t.PrefillTokens},
		{"decode_sequences", t.DecodeSequences},
		{"context_tokens", t.ContextTokens},
	}
}

// check returns an error for the first invalid part of the table.
func (t *Table) check() error {
	size := 1
	for _, a := range t.axes() {
		if len(a.points) == 0 {
			return fmt.Errorf("table.%s must have at least one point", a.name)
		}
		for i, v := range a.points {
			if v < 0 || v > maxPoint {
				return fmt.Errorf("table.%s[%d] must be between 0 and %d, is %d", a.name, i, int64(maxPoint), v)
			}
			if i > 0 && v <= a.points[i-1] {
				return fmt.Errorf("table.%s[%d] must be above the %d before it, is %d", a.name, i, a.points[i-1], v)
			}
		}
		if size *= len(a.points); size > maxCells {
			return fmt.Errorf("table: must have at most %d points", maxCells)
		}
	}
	if len(t.StepUS) != size {
		return fmt.Errorf(
			"table.step_us must have %d times (%d of prefill_tokens x %d of decode_sequences x %d of "+
				"context_tokens), has %d",
			size,
			len(t.PrefillTokens),
			len(t.DecodeSequences),
			len(t.ContextTokens),
			len(t.StepUS),
		)
	}
	if err := checkEach("table.step_us", t.StepUS); err != nil {
		return err
	}
	return t.checkRises()
}

// checkRises returns an error for the first time that is below one with less work.
func (t *Table) checkRises() error {
	axes := t.axes()
	for i, us := range t.StepUS {
		at := t.coordinates(i)
		stride := 1
		for n := len(axes) - 1; n >= 0; n-- {
			if at[n] > 0 {
				if before := t.StepUS[i-stride]; us < before {
					return fmt.Errorf(
						"table.step_us[%d] (%s %d, %s %d, %s %d) is %g, less than the %g at %s %d; step times "+
							"must not decrease",
						i,
						axes[0].name,
						axes[0].points[at[0]],
						axes[1].name,
						axes[1].points[at[1]],
						axes[2].name,
						axes[2].points[at[2]],
						us,
						before,
						axes[n].name,
						axes[n].points[at[n]-1],
					)
				}
			}
			stride *= len(axes[n].points)
		}
	}
	return nil
}

// coordinates returns the axis indexes of the i-th time.
func (t *Table) coordinates(i int) (at [3]int) {
	axes := t.axes()
	for n := len(axes) - 1; n >= 0; n-- {
		at[n] = i % len(axes[n].points)
		i /= len(axes[n].points)
	}
	return at
}

const (
	maxPoint = 1 << 40
	maxCells = 1 << 20
)
