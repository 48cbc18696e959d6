package diff

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/metrics"
	"blis/pkg/stat"
)

const (
	// draws is how often blocks are drawn.
	draws = 1000
	// mostParts is how many classes, tenants or models have intervals: those with
	// the most requests.
	mostParts = 50
)

// Bootstrap says what the intervals of differences come from; see the package's
// comment.
type Bootstrap struct {
	Paired bool    `json:"paired"`
	Level  float64 `json:"level"`
	Draws  int     `json:"draws"`
	Seed   uint64  `json:"seed"`
	// Blocks and BlockRequests are how many blocks there are and how many requests
	// each has, BlockS how many seconds of arrivals it spans on average; of a, where
	// the two are not paired.
	Blocks        int     `json:"blocks"`
	BlockRequests float64 `json:"block_requests"`
	BlockS        float64 `json:"block_s"`
}

// Interval is of a difference b − a.
type Interval struct{ Lo, Hi float64 }

// sample is one side, in blocks.
type sample struct {
	*side
	// order are the numbers of its requests, by arrival; block has the block of each.
	order     []int32
	block     []uint32
	resampled *stat.Resampling
	// starts are when the blocks begin, in µs of the run: throughputs are of what
	// completes between two of them. seconds is how long each draw lasted.
	starts  []int64
	seconds []float64
	// gaps: all gaps between tokens are of requests that completed, so that the mean of
	// ITL follows from their times.
	gaps bool
	// samples and scratch are memory.
	samples, scratch []stat.Tagged
}

// bootstrap resamples both sides. It returns nil where one of them holds no
// requests.
func (c *comparison) bootstrap() (*Bootstrap, map[string]Interval) {
	var s [2]sample
	stream := dist.NewStream(c.options.Seed, "bootstrap")
	for i := range s {
		s[i] = sample{side: c.sides[i]}
		if c.options.Unpaired {
			s[i].order = c.inOrder(c.sides[i])
		} else if i == 0 {
			s[0].order = c.inOrder(c.sides[0], c.sides[1])
		} else {
			s[1].order = s[0].order
		}
		if len(s[i].order) == 0 {
			return nil, nil
		}
	}
	enough := true
	for i := range s {
		if i == 0 || c.options.Unpaired {
			length, ok := c.blockLength(&s[i])
			enough = enough && ok
			s[i].resampled = stat.NewResampling(len(s[i].order), length, draws, stream.IntN)
		} else {
			s[i].resampled = s[0].resampled
		}
		s[i].block = make([]uint32, len(s[i].order))
		for k := range s[i].order {
			s[i].block[k] = s[i].resampled.Block(k)
		}
		s[i].samples = make([]stat.Tagged, 0, len(s[i].order))
		s[i].gaps = s[i].allGaps()
		s[i].starts = s[0].starts
		if i == 0 || c.options.Unpaired {
			s[i].starts = c.starts(&s[i])
		}
		s[i].seconds = s[i].resampled.Sums(s[i].spans())
	}
	r := s[0].resampled
	n := len(s[0].order)
	first, last := c.arrival(&s[0], 0), c.arrival(&s[0], n-1)
	b := &Bootstrap{Paired: !c.options.Unpaired, Level: 0.95, Draws: draws, Seed: c.options.Seed, Blocks: r.Blocks(),
		BlockRequests: float64(n) / float64(r.Blocks()), BlockS: float64(last-first) / 1e6 / float64(r.Blocks())}
	switch {
	case b.Blocks < stat.FewestBlocks:
		c.warn("intervals are of %d blocks of requests, fewer than %d: do not trust them", b.Blocks, stat.FewestBlocks)
	case !enough:
		c.warn("intervals may be too narrow: requests have more in common with later ones, or the load changes more, than blocks of a tenth of the run can hold")
	}
	return b, c.intervals(&s[0], &s[1])
}

// starts are when the first request of each block came.
func (c *comparison) starts(s *sample) []int64 {
	starts := make([]int64, s.resampled.Blocks())
	for k := len(s.order) - 1; k >= 0; k-- {
		starts[s.block[k]] = c.arrival(s, k)
	}
	return starts
}

// spans are how many seconds the blocks last: the first from the beginning of the
// run, the last to its end.
func (s *sample) spans() []float64 {
	spans := make([]float64, len(s.starts))
	end := int64(s.raw.UntilUS)
	for b := len(spans) - 1; b >= 0; b-- {
		start := min(s.starts[b], end)
		if b == 0 {
			start = int64(s.raw.FromUS)
		}
		spans[b] = float64(end-start) / 1e6
		end = start
	}
	return spans
}

// blockAt is the block in whose time an instant lies.
func (s *sample) blockAt(us int64) int {
	b, exact := slices.BinarySearch(s.starts, us)
	if !exact {
		b--
	}
	return max(b, 0)
}

func (s *sample) allGaps() bool {
	var n int64
	for _, k := range s.order {
		if q := s.at(k); q.state == completed && q.output > 1 {
			n += q.output - 1
		}
	}
	return s.raw.ITL != nil && s.raw.ITL.Count == n
}

func (c *comparison) arrival(s *sample, k int) int64 {
	if q := s.at(s.order[k]); q.state != 0 {
		return q.arrival
	}
	return c.sides[1].at(s.order[k]).arrival
}

// blockLength is how long the blocks of s must be: for TTFT and E2E, which quantiles
// depend on, and where the two are paired for their differences. enough is false
// where the run is too short for that.
func (c *comparison) blockLength(s *sample) (length int, enough bool) {
	length, enough = 1, true
	sides := []*side{s.side}
	if !c.options.Unpaired {
		sides = c.sides[:]
	}
	for _, of := range []func(*request) int64{func(q *request) int64 { return q.ttft }, func(q *request) int64 { return q.e2e }} {
		levels, differences := make([][]float64, len(sides)), []float64{}
		for _, n := range s.order {
			there := 0
			for i, side := range sides {
				if us := of(side.at(n)); us != absent {
					levels[i] = append(levels[i], float64(us))
					there++
				}
			}
			if there == 2 {
				differences = append(differences, float64(of(c.sides[1].at(n))-of(c.sides[0].at(n))))
			}
		}
		for _, series := range append(levels, differences) {
			l, ok := stat.BlockLength(series)
			length, enough = max(length, l), enough && ok
		}
	}
	return length, enough
}

// intervals are those of all statistics of the whole and its parts, by their paths.
func (c *comparison) intervals(a, b *sample) map[string]Interval {
	found := map[string]Interval{}
	add := func(prefix string, x, y map[string][]float64) {
		for path, of := range x { // each goes into a map
			other, both := y[path]
			if !both {
				continue
			}
			d := make([]float64, len(of))
			for i := range d {
				d[i] = other[i] - of[i]
			}
			if lo, hi, ok := a.resampled.Interval(d); ok {
				found[prefix+path] = Interval{lo, hi}
			}
		}
	}
	wholeA, wholeB := a.draw(a.everyone()), b.draw(b.everyone())
	add("", wholeA, wholeB)
	for _, part := range []struct {
		written string
		name    func(group) string
	}{{"cls", func(g group) string { return g.class }}, {"tenant", func(g group) string { return g.tenant }}, {"model", func(g group) string { return g.model }}} {
		inA, names, left := a.parts(c.groups.all, part.name)
		inB, _, _ := b.parts(c.groups.all, part.name)
		if left > 0 {
			c.warn("%s: %d have no intervals, but the %d with the most requests", part.written, left, mostParts)
		}
		for _, name := range names {
			prefix := metrics.Below(part.written, name) + "."
			if len(names) == 1 && len(inA[name]) == len(a.order) && len(inB[name]) == len(b.order) {
				add(prefix, wholeA, wholeB)
			} else {
				add(prefix, a.draw(inA[name]), b.draw(inB[name]))
			}
		}
	}
	return found
}

// everyone is all places of the order.
func (s *sample) everyone() []int32 {
	places := make([]int32, len(s.order))
	for k := range places {
		places[k] = int32(k)
	}
	return places
}

// draw returns statistics of each draw, by their paths, of the requests at those
// places of the order.
func (s *sample) draw(at []int32) map[string][]float64 {
	stats := map[string][]float64{}
	for _, t := range totals {
		sums := make([]float64, s.resampled.Blocks())
		for _, k := range at {
			if x, ok := t.of(s.at(s.order[k])); ok {
				sums[s.block[k]] += x
			}
		}
		stats[t.path] = s.resampled.Sums(sums)
	}
	for _, r := range ratios {
		stats[r.path] = stat.Ratios(stats[r.over], stats[r.under])
	}
	for _, r := range rates {
		sums := make([]float64, s.resampled.Blocks())
		for _, k := range at {
			if q := s.at(s.order[k]); q.e2e != absent {
				sums[s.blockAt(q.arrival+q.e2e)] += r.of(q)
			}
		}
		stats[r.path] = stat.Ratios(s.resampled.Sums(sums), s.seconds)
	}
	if s.gaps {
		stats["itl.mean"] = stat.Ratios(stats["_decode"], stats["_gaps"])
	}
	for _, m := range measures {
		samples := s.samples[:0]
		sums, counts := make([]float64, s.resampled.Blocks()), make([]float64, s.resampled.Blocks())
		for _, k := range at {
			if ms, ok := m.of(s.at(s.order[k])); ok {
				samples = append(samples, stat.Tagged{Key: math.Float64bits(ms), Tag: s.block[k]})
				sums[s.block[k]] += ms
				counts[s.block[k]]++
			}
		}
		s.samples = samples[:0]
		if cap(s.scratch) < len(samples) {
			s.scratch = make([]stat.Tagged, len(s.order))
		}
		samples = stat.SortTagged(samples, s.scratch[:len(samples)])
		stats[m.path+".mean"] = stat.Ratios(s.resampled.Sums(sums), s.resampled.Sums(counts))
		for i, q := range s.resampled.Quantiles(samples, percents) {
			stats[fmt.Sprintf("%s.p%d", m.path, percents[i])] = q
		}
	}
	stats["tail_blowup"] = stat.Ratios(stats["e2e.p99"], stats["e2e.p50"])
	return stats
}

var percents = []int64{50, 90, 95, 99}
