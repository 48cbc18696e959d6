package latency

import (
	"errors"
	"fmt"

	"blis/pkg/des"
)

// Table is a grid of measured step times, of which a table model is made. Real
// step times are concave in the batch here and stepped there, which no line
// follows.
type Table struct {
	// The axes: the prefill tokens of a step, its decode sequences, and the
	// tokens of context of all these together (see Batch). Each rises strictly
	// and has at least one point; the times do not depend on an axis of one.
	PrefillTokens   []int64 `yaml:"prefill_tokens" json:"prefill_tokens"`
	DecodeSequences []int64 `yaml:"decode_sequences" json:"decode_sequences"`
	ContextTokens   []int64 `yaml:"context_tokens" json:"context_tokens"`
	// StepUS has a time in µs for each point of the grid: context varies fastest,
	// prefill slowest. Along each axis no time is less than the one before it.
	StepUS []float64 `yaml:"step_us" json:"step_us"`
}

// table is the model of a Table: linear between neighbouring points, in all
// three axes. Before an axis's first point it holds the value there. Beyond the
// last it goes on with the slope of the last two, where no line may be flatter
// than one with less of the other two axes: two measured lines that draw
// together would cross far outside, and more work take less time.
type table struct {
	outside
	axes   [3][]float64
	points []float64
	// slopes are what a step takes longer for each unit beyond the end of an
	// axis, on the grid of the other two; nil for an axis of one point.
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
	m := &table{outside: newOutside(c.Alpha), points: c.Table.StepUS}
	for i, axis := range c.Table.axes() {
		for _, v := range axis.points {
			m.axes[i] = append(m.axes[i], float64(v))
		}
	}
	for i := range m.axes {
		m.slopes[i] = m.beyond(i)
	}
	return m, nil
}

// beyond returns the slopes at the end of an axis, raised to the largest that
// stands at or below them in the other two.
func (m *table) beyond(axis int) []float64 {
	x := m.axes[axis]
	last := len(x) - 1
	if last == 0 {
		return nil
	}
	rows, columns := others(axis)
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

// others returns the two axes beside one, the slower first.
func others(axis int) (rows, columns int) {
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

// place is where a value lies on an axis: part of the way from one point to the
// next, or over units beyond the last.
type place struct {
	at, next   int
	part, over float64
}

func find(axis []float64, v float64) place {
	last := len(axis) - 1
	if v <= axis[0] {
		return place{}
	}
	if v >= axis[last] {
		return place{at: last, next: last, over: v - axis[last]}
	}
	low, high := 0, last // axis[low] <= v < axis[high]
	for high-low > 1 {
		if middle := (low + high) >> 1; axis[middle] <= v {
			low = middle
		} else {
			high = middle
		}
	}
	return place{at: low, next: high, part: (v - axis[low]) / (axis[high] - axis[low])}
}

// between is the value part of the way from a to b, exactly a or b at the ends
// and never above b.
func between(a, b, part float64) float64 { return min(b, a+float64(part*(b-a))) }

// plane interpolates a grid of rows of some width, from its point offset on.
func plane(grid []float64, offset, width int, row, column place) float64 {
	a, b := grid[offset+row.at*width:], grid[offset+row.next*width:]
	return between(
		between(a[column.at], a[column.next], column.part),
		between(b[column.at], b[column.next], column.part),
		row.part,
	)
}

func (m *table) Step(b Batch) des.Time {
	prefill := find(m.axes[prefillAxis], float64(b.Prefill))
	decode := find(m.axes[decodeAxis], float64(b.Decode))
	context := find(m.axes[contextAxis], float64(b.Context))
	width := len(m.axes[contextAxis])
	size := len(m.axes[decodeAxis]) * width
	us := plane(m.points, prefill.at*size, width, decode, context)
	if prefill.part > 0 {
		us = between(us, plane(m.points, prefill.next*size, width, decode, context), prefill.part)
	}
	if prefill.over > 0 && m.slopes[prefillAxis] != nil {
		us += float64(prefill.over * plane(m.slopes[prefillAxis], 0, width, decode, context))
	}
	if decode.over > 0 && m.slopes[decodeAxis] != nil {
		us += float64(decode.over * plane(m.slopes[decodeAxis], 0, width, prefill, context))
	}
	if context.over > 0 && m.slopes[contextAxis] != nil {
		us += float64(context.over * plane(m.slopes[contextAxis], 0, len(m.axes[decodeAxis]), prefill, decode))
	}
	return max(1, micros(us))
}

// axis is an axis by the name that files give it.
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

// check reports the first thing that makes no table.
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
			return fmt.Errorf("a table of more than %d points is too large", maxCells)
		}
	}
	if len(t.StepUS) != size {
		return fmt.Errorf("table.step_us must have %d times (%d of prefill_tokens x %d of decode_sequences x %d of context_tokens), has %d",
			size, len(t.PrefillTokens), len(t.DecodeSequences), len(t.ContextTokens), len(t.StepUS))
	}
	if err := checkEach("table.step_us", t.StepUS); err != nil {
		return err
	}
	return t.checkRises()
}

// checkRises reports the first time that is less than one with less to do.
func (t *Table) checkRises() error {
	axes := t.axes()
	for i, us := range t.StepUS {
		at := t.position(i)
		stride := 1
		for n := len(axes) - 1; n >= 0; n-- {
			if at[n] > 0 {
				if before := t.StepUS[i-stride]; us < before {
					return fmt.Errorf("table.step_us[%d] (%s %d, %s %d, %s %d) is %g, less than the %g at %s %d: more to do never takes less time",
						i, axes[0].name, axes[0].points[at[0]], axes[1].name, axes[1].points[at[1]], axes[2].name, axes[2].points[at[2]],
						us, before, axes[n].name, axes[n].points[at[n]-1])
				}
			}
			stride *= len(axes[n].points)
		}
	}
	return nil
}

// position returns where the i-th time stands on the axes.
func (t *Table) position(i int) (at [3]int) {
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
