package metrics

import (
	"slices"

	"blis/pkg/spill"
	"blis/pkg/stat"
)

// spilled is what no longer fits the limit of an Accumulator: sorted runs in temporary files.
type spilled struct {
	// limit is the number of requests and of values of a column that are in memory.
	limit int
	// latencies are those of requests, tagged with their groups; counts are their numbers by group.
	latencies       []spill.Runs
	counts          [][]int64
	columns         []*column
	samples, sorted []stat.Keyed // scratch memory
	err             error
}

// column is a list of integers whose order does not matter.
type column struct {
	n      int64
	values []uint64
	runs   spill.Runs
}

// Spill bounds the memory for requests and sessions: no more than limit are kept in memory, and the rest in temporary
// files. It is called before the first outcome, and Close at the end.
func (a *Accumulator) Spill(limit int) { a.spilled.limit = limit }

// Err returns the first error of a temporary file. After it, results are worthless.
func (a *Accumulator) Err() error { return a.spilled.err }

// Close removes the temporary files.
func (a *Accumulator) Close() {
	for k := range a.spilled.latencies {
		a.spilled.latencies[k].Close()
	}
	for _, c := range a.spilled.columns {
		c.runs.Close()
	}
}

// spillRows moves all rows to the files.
func (a *Accumulator) spillRows() {
	p := &a.spilled
	if p.latencies == nil {
		p.latencies, p.counts = make([]spill.Runs, len(latencies)), make([][]int64, len(latencies))
	}
	for k := range latencies {
		sorted, counts := a.sortedRows(&latencies[k])
		p.append(&p.latencies[k], sorted)
		p.counts[k] = append(p.counts[k], make([]int64, len(counts)-len(p.counts[k]))...)
		for group, n := range counts {
			p.counts[k][group] += n
		}
	}
	a.rows = a.rows[:0]
}

// sortedRows returns the values of a latency that the rows in memory have, valid until the next call, and how many each
// group has.
func (a *Accumulator) sortedRows(m *latency) (sorted []stat.Keyed, counts []int64) {
	n := 0
	for _, chunk := range a.rows {
		n += len(chunk)
	}
	p := &a.spilled
	samples := slices.Grow(p.samples[:0], n)
	counts = make([]int64, len(a.totals))
	for _, chunk := range a.rows {
		for i := range chunk {
			if k, ok := m.key(&chunk[i]); ok {
				samples = append(samples, stat.Keyed{Key: k, Tag: chunk[i].group})
				counts[chunk[i].group]++
			}
		}
	}
	p.samples = samples
	return p.sort(), counts
}

// sort sorts the samples.
func (p *spilled) sort() []stat.Keyed {
	n := len(p.samples)
	p.sorted = slices.Grow(p.sorted[:0], n)[:n]
	return stat.SortKeyed(p.samples, p.sorted)
}

// add adds a value to a column.
func (p *spilled) add(c *column, x uint64) {
	c.n++
	if len(c.values) == p.limit {
		p.spillColumn(c)
	}
	c.values = append(c.values, x)
}

// spillColumn moves the values of a column to its file.
func (p *spilled) spillColumn(c *column) {
	if c.runs.Empty() {
		p.columns = append(p.columns, c)
	}
	p.samples = p.samples[:0]
	for _, x := range c.values {
		p.samples = append(p.samples, stat.Keyed{Key: x})
	}
	p.append(&c.runs, p.sort())
	c.values = c.values[:0]
}

// append appends a run, unless an earlier one failed.
func (p *spilled) append(to *spill.Runs, sorted []stat.Keyed) {
	if p.err == nil {
		p.err = to.Append(sorted)
	}
}

// micros returns the distribution of a column of times in µs.
func (p *spilled) micros(c *column) *Distribution {
	if c.n == 0 {
		return nil
	}
	x := newCollector(c.n, c.n)
	if c.runs.Empty() {
		slices.Sort(c.values)
		for _, us := range c.values {
			x.add(us)
		}
		return microsDistribution(x)
	}
	p.spillColumn(c)
	p.merge(&c.runs, func(sorted []stat.Keyed) {
		for i := range sorted {
			x.add(sorted[i].Key)
		}
	})
	return microsDistribution(x)
}

// merge merges runs, unless appending one failed.
func (p *spilled) merge(runs *spill.Runs, use func([]stat.Keyed)) {
	if p.err == nil {
		p.err = runs.Merge(use)
	}
}
