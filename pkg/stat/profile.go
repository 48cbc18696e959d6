package stat

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Spans are times in which something has a weight.
type Spans []span

type span struct{ from, to, weight float64 }

// Add adds a span.
func (s *Spans) Add(from, to, weight float64) { *s = append(*s, span{from, to, weight}) }

// Profile is a sum of spans over time, such as how many requests are in a batch at each instant.
type Profile struct {
	at []float64
	// height from at[i] on, and area up to it.
	height, area []float64
}

// Profile sums spans; those without a length or with an end that is NaN are ignored.
func (s Spans) Profile() *Profile {
	type change struct{ at, by float64 }
	var changes []change
	for _, s := range s {
		if s.to > s.from {
			changes = append(changes, change{s.from, s.weight}, change{s.to, -s.weight})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	p := &Profile{}
	height, area := 0.0, 0.0
	for i, c := range changes {
		if i > 0 {
			area += float64(height * (c.at - changes[i-1].at))
		}
		height += c.by
		p.at, p.height, p.area = append(p.at, c.at), append(p.height, height), append(p.area, area)
	}
	return p
}

// areaTo is the area up to a time.
func (p *Profile) areaTo(t float64) float64 {
	i := sort.SearchFloat64s(p.at, t)
	if i < len(p.at) && p.at[i] == t {
		return p.area[i]
	}
	if i == 0 {
		return 0
	}
	return p.area[i-1] + float64(p.height[i-1]*(t-p.at[i-1]))
}

// Mean is the mean height between two times, NaN if they are not in order.
func (p *Profile) Mean(from, to float64) float64 {
	if !(to > from) {
		return math.NaN()
	}
	return (p.areaTo(to) - p.areaTo(from)) / (to - from)
}

// Peak is the largest height.
func (p *Profile) Peak() float64 { return slices.Max(append(p.height, 0)) }
