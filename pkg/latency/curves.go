package latency

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// Curve is a time in µs by a size: linear between the points, and beyond the last one in proportion.
// Both lists ascend.
type Curve struct {
	At []int64   `json:"at"`
	US []float64 `json:"us"`
}

// Grid is a time in µs by sequences and the context of each: US has the times at the first number of
// sequences by context, then at the second, and so on. Times do not fall along either axis.
type Grid struct {
	Sequences []int64   `json:"sequences,omitempty"`
	Context   []int64   `json:"context,omitempty"`
	US        []float64 `json:"us,omitempty"`
}

// check returns an error if the curve falls or is no curve.
func (c *Curve) check() error {
	if len(c.At) == 0 || len(c.At) != len(c.US) {
		return fmt.Errorf("must have as many sizes as times, has %d and %d", len(c.At), len(c.US))
	}
	if c.At[0] < 0 || c.At[len(c.At)-1] > maxSize || !strictlyAscending(c.At) {
		return errors.New("sizes must ascend and not be negative")
	}
	return checkTimes(c.US, len(c.US))
}

func (g *Grid) check() error {
	if len(g.US) == 0 && len(g.Sequences) == 0 {
		return nil
	}
	if len(g.Sequences) == 0 || len(g.Context) == 0 || len(g.US) != len(g.Sequences)*len(g.Context) {
		return fmt.Errorf("must have a time for each of %d numbers of sequences and %d contexts, has %d",
			len(g.Sequences), len(g.Context), len(g.US))
	}
	if g.Sequences[0] < 1 || g.Context[0] < 0 || !strictlyAscending(g.Sequences) || !strictlyAscending(g.Context) ||
		max(g.Sequences[len(g.Sequences)-1], g.Context[len(g.Context)-1]) > maxSize {
		return errors.New("sequences and contexts must ascend and not be negative")
	}
	return checkTimes(g.US, len(g.Context))
}

// checkTimes checks rows of times.
func checkTimes(times []float64, width int) error {
	for i, us := range times {
		if !(us >= 0) || us > maxCoefficient {
			return fmt.Errorf("times must be between 0 and %g, one is %g", maxCoefficient, us)
		}
		if i%width > 0 && us < times[i-1] || i >= width && us < times[i-width] {
			return errors.New("times must not fall")
		}
	}
	return nil
}

// maxSize is far above any number of tokens.
const maxSize = 1 << 40

func strictlyAscending(list []int64) bool {
	for i := range list[1:] {
		if list[i+1] <= list[i] {
			return false
		}
	}
	return true
}

// scale finds the interval of a value: first[b] is the index of the first value with b bits or more.
type scale struct {
	at    []float64
	first [64]uint8
}

// maxAxis is the most values of an axis.
const maxAxis = 200

func newScale(values []int64) *scale {
	a := &scale{at: make([]float64, len(values))}
	for i, v := range values {
		a.at[i] = float64(v)
	}
	for b := range a.first {
		i, _ := slices.BinarySearchFunc(values, b, func(v int64, b int) int { return bits.Len64(uint64(v)) - b })
		a.first[b] = uint8(i)
	}
	return a
}

// locate returns the interval [i, i+1] of x and the weight of its end: i = len−2 and a weight above 1
// beyond the axis, 0 and 0 before it.
func (a *scale) locate(x float64) (i int, w float64) {
	last := len(a.at) - 1
	if last == 0 || x <= a.at[0] {
		return 0, 0
	}
	i = int(a.first[bits.Len64(uint64(x))&63])
	for i <= last && a.at[i] <= x {
		i++
	}
	if i = min(i, last) - 1; i < 0 {
		i = 0
	}
	return i, (x - a.at[i]) / (a.at[i+1] - a.at[i])
}

// line is a compiled Curve; nil is 0 everywhere.
type line struct {
	*scale
	us []float64
}

func newLine(c Curve) *line {
	if len(c.At) == 0 {
		return nil
	}
	return &line{newScale(c.At), c.US}
}

func (l *line) duration(x float64) float64 {
	if l == nil {
		return 0
	}
	i, w := l.locate(x)
	if w == 0 {
		return l.us[i]
	}
	if w > 1 { // in proportion to the size
		return l.us[i+1] * x / l.at[i+1]
	}
	return l.us[i] + float64(w*(l.us[i+1]-l.us[i]))
}

// surface is a compiled Grid; nil is 0 everywhere.
type surface struct {
	sequences, context *scale
	us                 []float64
}

func newSurface(g Grid) *surface {
	if len(g.US) == 0 {
		return nil
	}
	return &surface{newScale(g.Sequences), newScale(g.Context), g.US}
}

// duration returns the time of n sequences of equal context. Beyond the grid the last interval goes on.
func (s *surface) duration(n, context float64) float64 {
	if s == nil || n == 0 {
		return 0
	}
	i, wi := s.sequences.locate(n)
	j, wj := s.context.locate(context)
	width := len(s.context.at)
	at := i*width + j
	low := s.us[at]
	if wj != 0 {
		low += float64(wj * (s.us[at+1] - s.us[at]))
	}
	if wi == 0 {
		return low
	}
	at += width
	high := s.us[at]
	if wj != 0 {
		high += float64(wj * (s.us[at+1] - s.us[at]))
	}
	return low + float64(wi*(high-low))
}
