package diff

import (
	"cmp"
	"slices"

	"blis/pkg/metrics"
	"blis/pkg/resample"
	"blis/pkg/stat"
)

// maxGroups is the maximum number of classes, tenants or models with intervals: those
// with the most requests.
const maxGroups = 50

// Bootstrap describes the bootstrap that the intervals of differences come from; see
// package resample.
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

// resampledSide is one side in the bootstrap samples.
type resampledSide struct {
	*resample.Run
	*side
	// order lists the indices of its requests by position.
	order []int32
}

// bootstrap resamples both sides. It returns nil if one of them has no requests.
func (c *comparison) bootstrap() (*Bootstrap, map[string]stat.Interval) {
	source := resample.Source(c.options.Seed)
	a, b := &resampledSide{side: c.sides[0]}, &resampledSide{side: c.sides[1]}
	if c.options.Unpaired {
		a.order, b.order = c.byArrival(a.side), c.byArrival(b.side)
	} else {
		a.order = c.byArrival(c.sides[:]...)
		b.order = a.order
	}
	if len(a.order) == 0 || len(b.order) == 0 {
		return nil, nil
	}
	if x, y := a.inOrder(a.order), b.inOrder(b.order); c.options.Unpaired {
		a.Run, b.Run = resample.New(source, x).Run(0, a.raw), resample.New(source, y).Run(0, b.raw)
	} else {
		samples := resample.New(source, x, y)
		a.Run, b.Run = samples.Run(0, a.raw), samples.Run(1, b.raw)
	}
	blocks := float64(a.Blocks())
	d := &Bootstrap{Paired: !c.options.Unpaired, Level: stat.Level, Samples: a.Samples(), Seed: c.options.Seed,
		Blocks: a.Blocks(), BlockRequests: float64(len(a.order)) / blocks, BlockS: float64(a.SpanUS()) / 1e6 / blocks}
	switch {
	case d.Blocks < stat.MinBlocks:
		c.warn("intervals are unreliable: they come from %d blocks of requests, fewer than %d", d.Blocks,
			stat.MinBlocks)
	case !a.LongEnough || !b.LongEnough:
		c.warn("intervals may be too narrow: requests are correlated over more than a tenth of the run; " +
			"simulate a longer workload")
	}
	return d, c.intervals(a, b)
}

// inOrder returns the requests with those indices, nil for those that the stream does not
// have.
func (s *side) inOrder(order []int32) []*resample.Request {
	requests := make([]*resample.Request, len(order))
	for i, n := range order {
		if q := s.at(n); q.State != 0 {
			requests[i] = &q.Request
		}
	}
	return requests
}

// groupings are the groups of requests that have metrics of their own, by the first name of
// their paths. Only notIssued ones count calls that were not issued.
var groupings = []struct {
	name      string
	of        func(group) string
	notIssued bool
}{{"cls", func(g group) string { return g.class }, true},
	{"tenants", func(g group) string { return g.tenant }, true},
	{"models", func(g group) string { return g.model }, false}}

// pairedSets are the requests of a group on both sides, and the beginnings of the paths of its metrics: a tenant often
// has the requests of a class.
type pairedSets struct {
	sets     [2]resample.Set
	prefixes []string
}

// intervals returns the intervals of all statistics of the whole run and its groups, by
// path.
func (c *comparison) intervals(a, b *resampledSide) map[string]stat.Interval {
	var groups []pairedSets
	add := func(prefix string, rowsA, rowsB []int32, notIssued bool) {
		if slices.Equal(rowsA, rowsB) {
			rowsB = rowsA // of most runs: the other list, as long as the run, is garbage then
		}
		i := slices.IndexFunc(groups, func(g pairedSets) bool {
			return g.sets[0].NotIssued == notIssued && slices.Equal(g.sets[0].Rows, rowsA) &&
				slices.Equal(g.sets[1].Rows, rowsB)
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, pairedSets{sets: [2]resample.Set{{Rows: rowsA, NotIssued: notIssued},
				{Rows: rowsB, NotIssued: notIssued}}})
		}
		groups[i].prefixes = append(groups[i].prefixes, prefix)
	}
	allA, allB := a.All(), b.All()
	anyNotIssued := slices.ContainsFunc([]*resampledSide{a, b}, func(s *resampledSide) bool {
		return slices.ContainsFunc(s.order, func(n int32) bool { return s.at(n).NotIssued != 0 })
	})
	add("", allA, allB, anyNotIssued)
	for _, grouping := range groupings {
		rowsA, names, omitted := a.groupRows(allA, grouping.of)
		rowsB, _, _ := b.groupRows(allB, grouping.of)
		if omitted > 0 {
			c.warn("%s: %d groups have no intervals; only the %d with the most requests have them",
				grouping.name, omitted, maxGroups)
		}
		for _, name := range names {
			prefix := metrics.SubPath(grouping.name, name) + "."
			add(prefix, rowsA[name], rowsB[name], grouping.notIssued && anyNotIssued)
		}
	}
	found := map[string]stat.Interval{}
	for some := range slices.Chunk(groups, groupsAtOnce) {
		var sets [2][]resample.Set
		for _, g := range some {
			sets[0], sets[1] = append(sets[0], g.sets[0]), append(sets[1], g.sets[1])
		}
		x, y := a.Statistics(sets[0]...), b.Statistics(sets[1]...)
		for i, g := range some {
			for path := range x[i] { // the order does not matter: intervals is a map
				if y[i][path] == nil {
					continue
				}
				if ci, ok := a.Difference(x[i][path], y[i][path]); ok {
					for _, prefix := range g.prefixes {
						found[prefix+path] = ci
					}
				}
			}
		}
	}
	return found
}

// groupsAtOnce is the number of groups whose bootstrap samples are in memory at once: 0.7 MB each.
const groupsAtOnce = 16

// groupRows groups rows by a name of the requests' groups. largest are the names of the
// groups with the most requests, omitted is the number of the others.
func (s *resampledSide) groupRows(rows []int32, name func(group) string) (byName map[string][]int32,
	largest []string, omitted int) {
	var names []string
	numbers := map[string]int32{}
	numberOf := make([]int32, len(s.groups.all)) // of the name of each group
	for n, g := range s.groups.all {
		of := name(g)
		if _, known := numbers[of]; !known {
			numbers[of], names = int32(len(names)), append(names, of)
		}
		numberOf[n] = numbers[of]
	}
	sizes := make([]int, len(names))
	for _, i := range rows {
		sizes[numberOf[s.at(s.order[i]).group]]++
	}
	lists := make([][]int32, len(names))
	for n, size := range sizes {
		lists[n] = make([]int32, 0, size)
	}
	for _, i := range rows {
		list := &lists[numberOf[s.at(s.order[i]).group]]
		*list = append(*list, i)
	}
	byName = map[string][]int32{}
	for n, of := range names {
		if of != "" && len(lists[n]) > 0 {
			byName[of], largest = lists[n], append(largest, of)
		}
	}
	slices.SortFunc(largest, func(x, y string) int {
		return cmp.Or(cmp.Compare(len(byName[y]), len(byName[x])), cmp.Compare(x, y))
	})
	n := min(len(largest), maxGroups)
	return byName, largest[:n], len(largest) - n
}
