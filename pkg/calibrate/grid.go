package calibrate

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"blis/pkg/latency"
	"blis/pkg/recording"
)

// mostPoints is how many points an axis of a grid has at most: more are no grid.
const mostPoints = 40

// contextPoints is how many points of context a table has, from none to the most in
// equal ratios.
const contextPoints = 24

// cell is a batch of a grid, without its context.
type cell struct{ prefill, decode int64 }

// tableOf makes a table of steps that are a grid in prefill and decode, nil if they
// are none.
//
// A table must rise along all axes, and steps do not quite: a long context of one
// sequence takes longer than the same of many, which fill a GPU better. Servers have
// many, so that a time counts as no longer than that of more sequences with as much
// context; so does what was never measured. Along the other axes the longer time
// counts.
func tableOf(steps []recording.Step) *latency.Table {
	cells := map[cell][]recording.Step{}
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
	if len(prefills) > mostPoints || len(decodes) > mostPoints {
		return nil
	}
	t := &latency.Table{PrefillTokens: often(prefills, len(decodes)), DecodeSequences: often(decodes, len(prefills)), ContextTokens: []int64{0}}
	if len(t.PrefillTokens) < 2 || len(t.DecodeSequences) < 2 {
		return nil
	}
	for i := range contextPoints - 1 {
		at := int64(math.Round(float64(most) / math.Pow(1.6, float64(contextPoints-2-i))))
		if at > t.ContextTokens[len(t.ContextTokens)-1] {
			t.ContextTokens = append(t.ContextTokens, at)
		}
	}
	width := len(t.ContextTokens)
	stride := width * len(t.DecodeSequences)
	for i, p := range t.PrefillTokens {
		plane := make([]float64, stride)
		for k := len(t.DecodeSequences) - 1; k >= 0; k-- {
			c := curveOf(cells[cell{p, t.DecodeSequences[k]}])
			for j, context := range t.ContextTokens {
				us := c.at(float64(context))
				if more := k*width + j + width; more < stride {
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
				plane[n] = max(plane[n], t.StepUS[(i-1)*stride+n])
			}
			if math.IsInf(plane[n], 1) {
				return nil // nothing was measured of the largest batches
			}
			plane[n] = math.Round(10*plane[n]) / 10
		}
		t.StepUS = append(t.StepUS, plane...)
	}
	return t
}

// often are the values that stand in at least 60 % of the rows of a grid, rising.
func often(counts map[int64]int, rows int) (values []int64) {
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		if 10*counts[v] >= 6*rows {
			values = append(values, v)
		}
	}
	return values
}

// curve is step times by context, linear between those that were measured.
type curve struct{ context, us []float64 }

// curveOf takes the mean of steps of the same context.
func curveOf(steps []recording.Step) (c curve) {
	slices.SortStableFunc(steps, func(a, b recording.Step) int { return cmp.Compare(a.Context, b.Context) })
	n := 0.0
	for i, x := range steps {
		if i == 0 || x.Context != steps[i-1].Context {
			c.context, c.us, n = append(c.context, float64(x.Context)), append(c.us, 0), 0
		}
		last := len(c.us) - 1
		c.us[last] = (c.us[last]*n + x.US) / (n + 1)
		n++
	}
	return c
}

// at is the time at a context: infinite of no steps; beyond the last context it goes on as
// between the last two.
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

func buildTable(alpha [4]float64, t *latency.Table) (latency.Model, error) {
	build, err := latency.Models.Get("latency model", "table")
	if err != nil {
		return nil, err
	}
	return build(latency.Coefficients{Alpha: alpha[:], Table: t})
}
