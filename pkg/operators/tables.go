// Package operators turns tables of measured kernels into the curves of the latency model
// operators: it reads the tables, cleans and distills them, and sums the kernels of a model's step.
//
// The tables are those of the Python package aiconfigurator-core (NVIDIA, Apache-2.0), a folder
// systems/data/SYSTEM/OP/vllm/VERSION/*_perf.parquet with one row per measurement. Distilled ones of
// some GPUs are built in.
package operators

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Tables are the measured kernels of a system.
type Tables struct {
	System string
	series map[string]*grid
	// notes say what is not of the GPU that they are used for.
	notes []string
	// axes has the n and k of products by format, once they were asked for.
	axes map[string][2][]float64
}

func newTables(system string) *Tables {
	return &Tables{System: system, series: map[string]*grid{}, axes: map[string][2][]float64{}}
}

// grid is the time of a kernel in µs by one or two sizes: us[i·len(y)+j] at x[i] and y[j]. Both axes
// ascend. Cells that were not measured are NaN until fill.
type grid struct {
	x, y []float64
	us   []float64
}

// key is the name of a series: the parts of a kernel that are not an axis of its grid.
func key(parts ...any) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('|')
		}
		switch p := p.(type) {
		case string:
			b.WriteString(p)
		case int:
			b.WriteString(strconv.Itoa(p))
		default:
			panic("operators: a key has texts and integers")
		}
	}
	return b.String()
}

// at returns a pointer to a cell.
func (g *grid) at(i, j int) *float64 { return &g.us[i*len(g.y)+j] }

// clean makes a complete grid monotone. A kernel never needs longer for less work: measured
// times that do are noise, or a slower kernel that a server would avoid by padding. So from large to
// small sizes the shortest time counts.
func (g *grid) clean() {
	for i := len(g.x) - 1; i >= 0; i-- {
		for j := len(g.y) - 1; j >= 0; j-- {
			c := g.at(i, j)
			if i+1 < len(g.x) {
				*c = min(*c, *g.at(i+1, j))
			}
			if j+1 < len(g.y) {
				*c = min(*c, *g.at(i, j+1))
			}
		}
	}
}

// fill sets the cells that were not measured: in a corner of large sizes, in proportion to the
// largest measured ones; elsewhere from the next larger ones.
func (g *grid) fill() {
	for j := range g.y {
		for i := range g.x {
			c := g.at(i, j)
			if !math.IsNaN(*c) {
				continue
			}
			if next := g.nextMeasured(i, j); !math.IsNaN(next) {
				*c = next
			} else if i > 0 && !math.IsNaN(*g.at(i-1, j)) {
				*c = *g.at(i-1, j) * g.x[i] / g.x[i-1]
			} else if j > 0 && !math.IsNaN(*g.at(i, j-1)) {
				*c = *g.at(i, j-1) * (g.y[j] + 1) / (g.y[j-1] + 1)
			}
		}
	}
}

// nextMeasured is the time of the next larger x that was measured.
func (g *grid) nextMeasured(i, j int) float64 {
	for i++; i < len(g.x); i++ {
		if us := *g.at(i, j); !math.IsNaN(us) {
			return us
		}
	}
	return math.NaN()
}

// interpolate returns the time at sizes x and y, linear between the cells of the grid and beyond
// them in proportion to the size; below them it is the time of the smallest.
func (g *grid) interpolate(x, y float64) float64 {
	i, wx := bracket(g.x, x)
	j, wy := bracket(g.y, y)
	at := func(i int) float64 {
		if wy == 0 {
			return *g.at(i, j)
		}
		return float64(*g.at(i, j)*(1-wy)) + float64(*g.at(i, j+1)*wy)
	}
	us := at(i)
	if wx != 0 {
		us += float64((at(i+1) - us) * wx)
	}
	return us * beyond(g.x, x) * beyond(g.y, y)
}

// beyond is how many times x exceeds the last value of an axis, 1 if it does not.
func beyond(axis []float64, x float64) float64 {
	if last := axis[len(axis)-1]; x > last && last > 0 {
		return x / last
	}
	return 1
}

// bracket returns the index i of an axis and the weight of its successor for x. At and beyond the
// ends the weight is 0.
func bracket(axis []float64, x float64) (i int, w float64) {
	n := len(axis)
	switch {
	case x <= axis[0]:
		return 0, 0
	case x >= axis[n-1]:
		return n - 1, 0
	}
	i, found := slices.BinarySearch(axis, x)
	if found {
		return i, 0
	}
	return i - 1, (x - axis[i-1]) / (axis[i] - axis[i-1])
}

// row is a measurement of a series; model distinguishes models whose kernels are of equal size.
type row struct{ x, y, us, model float64 }

// newGrid makes a complete grid of rows. Of equal sizes the shortest time counts, since another kernel
// or a disturbance explains a longer one.
func newGrid(rows []row) *grid {
	xs, ys := map[float64]bool{}, map[float64]bool{}
	for _, r := range rows {
		xs[r.x], ys[r.y] = true, true
	}
	g := &grid{x: slices.Sorted(maps.Keys(xs)), y: slices.Sorted(maps.Keys(ys))}
	g.us = slices.Repeat([]float64{math.NaN()}, len(g.x)*len(g.y))
	for _, r := range rows {
		i, _ := slices.BinarySearch(g.x, r.x)
		j, _ := slices.BinarySearch(g.y, r.y)
		if c := g.at(i, j); math.IsNaN(*c) || r.us < *c {
			*c = r.us
		}
	}
	g.fill()
	return g
}

// fields returns the parts of all keys of an operator, sorted.
func (t *Tables) fields(operator string) [][]string {
	var all [][]string
	for _, name := range slices.Sorted(maps.Keys(t.series)) {
		if rest, ok := strings.CutPrefix(name, operator+"|"); ok {
			all = append(all, strings.Split(rest, "|"))
		}
	}
	return all
}

// atoi converts a part of a key that is a number.
func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic("operators: " + err.Error())
	}
	return n
}

// CompareVersions orders texts with numbers, such as 0.24.0, by the numbers.
func CompareVersions(a, b string) int {
	numbers := func(text string) (list []int) {
		for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
			n, err := strconv.Atoi(part)
			if err != nil {
				n = math.MaxInt
			}
			list = append(list, n)
		}
		return list
	}
	return cmp.Or(slices.Compare(numbers(a), numbers(b)), strings.Compare(a, b))
}
