package latency

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"blis/pkg/portable"
)

// maxPoints is the most points of a grid's axis: more are no grid.
const maxPoints = 40

// contextPoints is how many points of context a table has, in equal ratios above 0.
const contextPoints = 24

// MeasuredStep is the measured time of a batch of prefill tokens and decode sequences with a
// total context.
type MeasuredStep struct {
	Prefill, Decode, Context int64
	US                       float64
}

// cell is a batch of a grid, without its context.
type cell struct{ prefill, decode int64 }

// TableOf makes a table of steps that are a grid in prefill and decode; nil if they are not.
//
// A table must not fall along any axis, but measured steps do: one sequence with a long
// context takes longer than several with the same total, which use a GPU better. Servers run
// several, so a time is at most that of more sequences with the same context, also where
// nothing was measured. Along the other axes the longer time counts.
func TableOf(steps []MeasuredStep) *Table {
	cells := map[cell][]MeasuredStep{}
	prefills, decodes := map[int64]int{}, map[int64]int{}
	most := int64(1)
	for _, x := range steps {
		at := cell{x.Prefill, x.Decode}
		if cells[at] == nil {
			prefills[x.Prefill]++
			decodes[x.Decode]++
		}
		cells[at] = append(cells[at], x)
		most = max(most, x.Context)
	}
	if len(prefills) > maxPoints || len(decodes) > maxPoints {
		return nil
	}
	t := &Table{PrefillTokens: gridValues(prefills, len(decodes)),
		DecodeSequences: gridValues(decodes, len(prefills)), ContextTokens: []int64{0}}
	if len(t.PrefillTokens) < 2 || len(t.DecodeSequences) < 2 {
		return nil
	}
	for i := range contextPoints - 1 {
		at := int64(math.Round(float64(most) / portable.Pow(1.6, float64(contextPoints-2-i))))
		if at > t.ContextTokens[len(t.ContextTokens)-1] {
			t.ContextTokens = append(t.ContextTokens, at)
		}
	}
	for i := range t.PrefillTokens {
		if !appendPlane(t, cells, i) {
			return nil
		}
	}
	return t
}

// appendPlane appends the step times of one number of prefill tokens; false if nothing was
// measured of its largest batch.
func appendPlane(t *Table, cells map[cell][]MeasuredStep, i int) bool {
	width := len(t.ContextTokens)
	plane := make([]float64, width*len(t.DecodeSequences))
	for k := len(t.DecodeSequences) - 1; k >= 0; k-- {
		c := newCurve(cells[cell{t.PrefillTokens[i], t.DecodeSequences[k]}])
		for j, context := range t.ContextTokens {
			us := c.at(float64(context))
			if more := k*width + j + width; more < len(plane) {
				us = min(us, plane[more])
			}
			plane[k*width+j] = us
		}
	}
	for n := range plane {
		if n%width > 0 {
			plane[n] = max(plane[n], plane[n-1])
		}
		if n >= width {
			plane[n] = max(plane[n], plane[n-width])
		}
		if i > 0 {
			plane[n] = max(plane[n], t.StepUS[(i-1)*len(plane)+n])
		}
		if math.IsInf(plane[n], 1) {
			return false
		}
		plane[n] = math.Round(10*plane[n]) / 10
	}
	t.StepUS = append(t.StepUS, plane...)
	return true
}

// gridValues are the values in at least 60 % of the rows of a grid, ascending.
func gridValues(counts map[int64]int, rows int) (values []int64) {
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		if 10*counts[v] >= 6*rows {
			values = append(values, v)
		}
	}
	return values
}

// curve is step times by context, linear between measured ones.
type curve struct{ context, us []float64 }

// newCurve takes the mean of steps with the same context.
func newCurve(steps []MeasuredStep) (c curve) {
	slices.SortStableFunc(steps, func(a, b MeasuredStep) int { return cmp.Compare(a.Context, b.Context) })
	n := 0.0
	for i, x := range steps {
		if i == 0 || x.Context != steps[i-1].Context {
			c.context, c.us, n = append(c.context, float64(x.Context)), append(c.us, 0), 0
		}
		last := len(c.us) - 1
		c.us[last] = (float64(c.us[last]*n) + x.US) / (n + 1)
		n++
	}
	return c
}

// at is the time at a context, infinite without steps. It is extrapolated beyond the largest.
func (c *curve) at(context float64) float64 {
	n := len(c.context)
	switch i, _ := slices.BinarySearch(c.context, context); {
	case n == 0:
		return math.Inf(1)
	case i == 0 || n == 1:
		return c.us[0]
	default:
		i = min(i, n-1)
		return c.us[i-1] + (c.us[i]-c.us[i-1])*(context-c.context[i-1])/(c.context[i]-c.context[i-1])
	}
}
