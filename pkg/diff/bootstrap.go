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
	// bootstrapSamples is the number of bootstrap samples.
	bootstrapSamples = 1000
	// maxGroups is the maximum number of classes, tenants or models with intervals: those
	// with the most requests.
	maxGroups = 50
)

// Bootstrap describes the bootstrap that the intervals of differences come from; see the
// package comment.
type Bootstrap struct {
	Paired  bool    `json:"paired"`
	Level   float64 `json:"level"`
	Samples int     `json:"samples"`
	Seed    uint64  `json:"seed"`
	// Blocks is the number of blocks, BlockRequests their mean number of requests, BlockS
	// the mean duration of their arrivals; those of a if the requests are not paired.
	Blocks        int     `json:"blocks"`
	BlockRequests float64 `json:"block_requests"`
	BlockS        float64 `json:"block_s"`
}

// resampledSide is one side, divided into blocks.
type resampledSide struct {
	*side
	// order lists the indices of its requests by arrival; block has the block of each.
	order     []int32
	block     []uint32
	resampled *stat.Resampling
	// blockStarts are the first arrivals of the blocks, in µs of the run. A throughput
	// counts what completes between two of them. durations are those of the bootstrap
	// samples, in s.
	blockStarts []int64
	durations   []float64
	// allITL: all inter-token gaps belong to completed requests, so that the mean ITL
	// follows from their times.
	allITL bool
	// sortMemory and scratch are reused.
	sortMemory, scratch []stat.Keyed
}

// bootstrap resamples both sides. It returns nil if one of them has no requests.
func (c *comparison) bootstrap() (*Bootstrap, map[string]stat.Interval) {
	var s [2]resampledSide
	stream := dist.NewStream(c.options.Seed, "bootstrap")
	for i := range s {
		s[i] = resampledSide{side: c.sides[i]}
		if c.options.Unpaired {
			s[i].order = c.byArrival(c.sides[i])
		} else if i == 0 {
			s[0].order = c.byArrival(c.sides[0], c.sides[1])
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
			s[i].resampled = stat.NewResampling(len(s[i].order), length, bootstrapSamples, stream.IntN)
		} else {
			s[i].resampled = s[0].resampled
		}
		s[i].block = make([]uint32, len(s[i].order))
		for k := range s[i].order {
			s[i].block[k] = s[i].resampled.Block(k)
		}
		s[i].sortMemory = make([]stat.Keyed, 0, len(s[i].order))
		s[i].allITL = s[i].hasAllITL()
		s[i].blockStarts = s[0].blockStarts
		if i == 0 || c.options.Unpaired {
			s[i].blockStarts = c.blockStarts(&s[i])
		}
		s[i].durations = s[i].resampled.Sums(s[i].blockDurations())
	}
	r := s[0].resampled
	n := len(s[0].order)
	first, last := c.arrival(&s[0], 0), c.arrival(&s[0], n-1)
	b := &Bootstrap{Paired: !c.options.Unpaired, Level: 0.95, Samples: bootstrapSamples, Seed: c.options.Seed,
		Blocks:        r.Blocks(),
		BlockRequests: float64(n) / float64(r.Blocks()), BlockS: float64(last-first) / 1e6 / float64(r.Blocks())}
	switch {
	case b.Blocks < stat.MinBlocks:
		c.warn("intervals are unreliable: they come from %d blocks of requests, fewer than %d", b.Blocks,
			stat.MinBlocks)
	case !enough:
		c.warn("intervals may be too narrow: requests are correlated over more than a tenth of the run; " +
			"simulate a longer workload")
	}
	return b, c.intervals(&s[0], &s[1])
}

// blockStarts returns the first arrival of each block.
func (c *comparison) blockStarts(s *resampledSide) []int64 {
	starts := make([]int64, s.resampled.Blocks())
	for k := len(s.order) - 1; k >= 0; k-- {
		starts[s.block[k]] = c.arrival(s, k)
	}
	return starts
}

// blockDurations returns the durations of the blocks in s. The first starts with the run,
// the last ends with it.
func (s *resampledSide) blockDurations() []float64 {
	durations := make([]float64, len(s.blockStarts))
	end := int64(s.raw.UntilUS)
	for b := len(durations) - 1; b >= 0; b-- {
		start := min(s.blockStarts[b], end)
		if b == 0 {
			start = int64(s.raw.FromUS)
		}
		durations[b] = float64(end-start) / 1e6
		end = start
	}
	return durations
}

// blockAt returns the block whose time contains us.
func (s *resampledSide) blockAt(us int64) int {
	b, exact := slices.BinarySearch(s.blockStarts, us)
	if !exact {
		b--
	}
	return max(b, 0)
}

func (s *resampledSide) hasAllITL() bool {
	var n int64
	for _, k := range s.order {
		if q := s.at(k); q.state == completed && q.output > 1 {
			n += q.output - 1
		}
	}
	return s.raw.ITL != nil && s.raw.ITL.Count == n
}

func (c *comparison) arrival(s *resampledSide, k int) int64 {
	if q := s.at(s.order[k]); q.state != 0 {
		return q.arrival
	}
	return c.sides[1].at(s.order[k]).arrival
}

// blockLength returns the block length for the correlation of TTFT and E2E, which the
// quantiles depend on, and of their paired differences. enough is false if the run is too
// short for that.
func (c *comparison) blockLength(s *resampledSide) (length int, enough bool) {
	length, enough = 1, true
	sides := []*side{s.side}
	if !c.options.Unpaired {
		sides = c.sides[:]
	}
	for _, of := range []func(*request) int64{func(q *request) int64 { return q.ttft },
		func(q *request) int64 { return q.e2e }} {
		levels, differences := make([][]float64, len(sides)), []float64{}
		for _, n := range s.order {
			present := 0
			for i, side := range sides {
				if us := of(side.at(n)); us != missing {
					levels[i] = append(levels[i], float64(us))
					present++
				}
			}
			if present == 2 {
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

// intervals returns the intervals of all statistics of the whole run and its groups, by
// path.
func (c *comparison) intervals(a, b *resampledSide) map[string]stat.Interval {
	found := map[string]stat.Interval{}
	add := func(prefix string, x, y map[string][]float64) {
		for path, of := range x { // the order does not matter: found is a map
			other, both := y[path]
			if !both {
				continue
			}
			d := make([]float64, len(of))
			for i := range d {
				d[i] = other[i] - of[i]
			}
			if ci, ok := a.resampled.Interval(d); ok {
				found[prefix+path] = ci
			}
		}
	}
	wholeA, wholeB := a.statistics(a.allRows()), b.statistics(b.allRows())
	add("", wholeA, wholeB)
	for _, grouping := range []struct {
		name string
		of   func(group) string
	}{{"cls", func(g group) string { return g.class }}, {"tenants", func(g group) string { return g.tenant }},
		{"models", func(g group) string { return g.model }}} {
		rowsA, names, omitted := a.groupRows(c.groups.all, grouping.of)
		rowsB, _, _ := b.groupRows(c.groups.all, grouping.of)
		if omitted > 0 {
			c.warn("%s: %d groups have no intervals; only the %d with the most requests have them", grouping.name, omitted,
				maxGroups)
		}
		for _, name := range names {
			prefix := metrics.SubPath(grouping.name, name) + "."
			if len(names) == 1 && len(rowsA[name]) == len(a.order) && len(rowsB[name]) == len(b.order) {
				add(prefix, wholeA, wholeB)
			} else {
				add(prefix, a.statistics(rowsA[name]), b.statistics(rowsB[name]))
			}
		}
	}
	return found
}

// allRows returns all positions in order.
func (s *resampledSide) allRows() []int32 {
	positions := make([]int32, len(s.order))
	for k := range positions {
		positions[k] = int32(k)
	}
	return positions
}

// statistics returns the statistics of each bootstrap sample, by path, for the requests
// at the given positions in order.
func (s *resampledSide) statistics(at []int32) map[string][]float64 {
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
			if q := s.at(s.order[k]); q.e2e != missing {
				sums[s.blockAt(q.arrival+q.e2e)] += r.of(q)
			}
		}
		stats[r.path] = stat.Ratios(s.resampled.Sums(sums), s.durations)
	}
	if s.allITL {
		stats["itl.mean"] = stat.Ratios(stats["_decode"], stats["_gaps"])
	}
	for _, m := range times {
		samples := s.sortMemory[:0]
		sums, counts := make([]float64, s.resampled.Blocks()), make([]float64, s.resampled.Blocks())
		for _, k := range at {
			if ms, ok := m.of(s.at(s.order[k])); ok {
				samples = append(samples, stat.Keyed{Key: math.Float64bits(ms), Tag: s.block[k]})
				sums[s.block[k]] += ms
				counts[s.block[k]]++
			}
		}
		s.sortMemory = samples[:0]
		if cap(s.scratch) < len(samples) {
			s.scratch = make([]stat.Keyed, len(s.order))
		}
		samples = stat.SortKeyed(samples, s.scratch[:len(samples)])
		stats[m.path+".mean"] = stat.Ratios(s.resampled.Sums(sums), s.resampled.Sums(counts))
		for i, q := range s.resampled.Quantiles(samples, percentiles) {
			stats[fmt.Sprintf("%s.p%d", m.path, percentiles[i])] = q
		}
	}
	stats["tail_blowup"] = stat.Ratios(stats["e2e.p99"], stats["e2e.p50"])
	return stats
}

var percentiles = []int64{50, 90, 95, 99}
