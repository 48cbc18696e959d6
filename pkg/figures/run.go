package figures

import (
	"math"
	"slices"

	"blis/pkg/resample"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// Run is what the figures of one run show. Lists that a run can be without are empty, not nil, for scripts; Waiting, KV
// and Regrets are nil if unknown.
type Run struct {
	Name string `json:"name"`
	// Measured: the run is a recording of a real server.
	Measured bool      `json:"measured,omitempty"`
	Classes  []targets `json:"classes"`
	// Distributions are those of the latencies, each of all requests and, if there are several, of each class.
	Distributions []distribution `json:"distributions"`
	Heat          []heat         `json:"heat"`
	Time          timeSeries     `json:"time"`
	Replicas      replicaSeries  `json:"replicas"`
	Worst         []request      `json:"worst"`
	Regrets       []request      `json:"regrets"`
	// UntilS is when the run ended.
	UntilS float64 `json:"-"`
}

// targets are the SLO targets of a class, in ms; 0 is none.
type targets struct {
	Name   string  `json:"name"`
	TTFTMS float64 `json:"ttft,omitempty"`
	TPOTMS float64 `json:"tpot,omitempty"`
	E2EMS  float64 `json:"e2e,omitempty"`
}

// distribution holds the quantiles of a latency: MS[i] at Permilles[i].
type distribution struct {
	Latency string    `json:"latency"`
	Class   string    `json:"class,omitempty"` // "" is all requests
	Count   int64     `json:"count"`
	MS      []float64 `json:"ms"`
}

// Permilles are the quantiles of a distribution, in thousandths: denser at the end, where latencies differ most.
var Permilles = func() (p []int64) {
	for i := int64(0); i < 980; i += 10 {
		p = append(p, i)
	}
	for i := int64(980); i <= 1000; i++ {
		p = append(p, i)
	}
	return p
}()

// quantileAt is the p-th thousandth of sorted, which is ascending and not empty: linear between neighbors, as in
// package stat.
func quantileAt(sorted []float64, p int64) float64 {
	at := int64(len(sorted)-1) * p
	i, rest := at/1000, float64(at%1000)/1000
	if rest == 0 {
		return sorted[i]
	}
	low, high := sorted[i], sorted[i+1]
	return min(max(low+rest*(high-low), low), high)
}

// round keeps µs of a time in ms, which is enough for a figure.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// Run returns the figures of the run, which is one of several, after its last record.
func (c *Collector) Run(name string, of int) *Run {
	details := min(worstShown, worstOfAll/of)
	f := &Run{Name: name, Measured: c.Measured(), Worst: c.worst.all[:min(details, len(c.worst.all))],
		Regrets: c.regrets.all[:min(details, len(c.regrets.all))],
		Classes: []targets{}, Distributions: []distribution{}, Heat: []heat{}}
	names := map[string]bool{}
	for _, class := range c.classes {
		names[class] = true
	}
	for _, class := range c.header.SLOClasses {
		if names[class.Name] {
			t := class.Targets
			f.Classes = append(f.Classes, targets{class.Name, t.TTFTMS, t.TPOTMS, t.E2EMS})
			delete(names, class.Name)
		}
	}
	for _, class := range c.sortedNames(names) {
		if class != "" {
			f.Classes = append(f.Classes, targets{Name: class})
		}
	}
	until := max(c.last, 1)
	f.UntilS = float64(until) / 1e6
	f.Time = c.timeSeries(until)
	var sorted, scratch []stat.Keyed
	for i := range resample.Latencies {
		l := &resample.Latencies[i]
		if sorted, scratch = c.sort(l, sorted, scratch); len(sorted) > 0 {
			c.addLatency(f, l.Name, sorted, until, of)
			f.Time.Percentiles = append(f.Time.Percentiles,
				c.percentiles(l.Name, sorted, f.Time.width, len(f.Time.Arrived)))
		}
	}
	f.Replicas = c.replicaSeries(until, f.Time.width)
	return f
}

func (c *Collector) sortedNames(names map[string]bool) (sorted []string) {
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted
}

// sort returns the times in ms of the requests that have a latency, in ascending order: the bits of each, which have
// the same order, and the row of the request. The buffers have what it returned before.
func (c *Collector) sort(l *resample.Latency, buffer, scratch []stat.Keyed) (sorted, rest []stat.Keyed) {
	buffer = slices.Grow(buffer[:0], len(c.rows))
	for i := range c.rows {
		if q := &c.rows[i]; q.State != 0 {
			if t, ok := l.MS(&q.Request); ok {
				buffer = append(buffer, stat.Keyed{Key: math.Float64bits(t), Tag: uint32(i)})
			}
		}
	}
	scratch = slices.Grow(scratch[:0], len(buffer))[:len(buffer)]
	if sorted = stat.SortKeyed(buffer, scratch); len(sorted) > 0 && &sorted[0] == &scratch[0] {
		return sorted, buffer
	}
	return sorted, scratch
}

// groups divides ascending times into n groups, each of which is ascending.
func (c *Collector) groups(sorted []stat.Keyed, n int, of func(*Row) int) [][]float64 {
	counts := make([]int, n)
	for _, t := range sorted {
		counts[of(&c.rows[t.Tag])]++
	}
	all, groups := make([]float64, len(sorted)), make([][]float64, n)
	for i, count := range counts {
		groups[i], all = all[:0:count], all[count:]
	}
	for _, t := range sorted {
		i := of(&c.rows[t.Tag])
		groups[i] = append(groups[i], math.Float64frombits(t.Key))
	}
	return groups
}

// addLatency adds the distributions and the heat map of a latency. of is the number of runs.
func (c *Collector) addLatency(f *Run, latency string, sorted []stat.Keyed, until stream.Micros, of int) {
	all := c.groups(sorted, 1, func(*Row) int { return 0 })[0]
	f.Distributions = append(f.Distributions, describe(latency, "", all))
	if len(f.Classes) > 1 {
		byClass := c.groups(sorted, len(c.classes), func(q *Row) int { return int(q.class) })
		for _, class := range f.Classes {
			if times := byClass[c.classNumber[class.Name]]; len(times) > 0 {
				f.Distributions = append(f.Distributions, describe(latency, class.Name, times))
			}
		}
	}
	points := make([]point, len(sorted))
	for i, t := range sorted {
		points[i] = point{stream.Micros(c.rows[t.Tag].Arrival), all[i]}
	}
	f.Heat = append(f.Heat, heatOf(latency, points, until, of))
}

// describe returns the distribution of ascending times.
func describe(latency, class string, times []float64) distribution {
	d := distribution{Latency: latency, Class: class, Count: int64(len(times)), MS: make([]float64, len(Permilles))}
	for i, p := range Permilles {
		d.MS[i] = round(quantileAt(times, p))
	}
	return d
}

// heat counts the requests by arrival and latency. Cells are [bin of time, bin of latency, requests]; bin i of latency
// is from Edges[i] to Edges[i+1], in ms.
type heat struct {
	Latency string    `json:"latency"`
	WidthS  float64   `json:"width_s"`
	Edges   []float64 `json:"edges"`
	Cells   [][3]int  `json:"cells"`
}

// perDecade are the edges of the bins of a latency between 1 and 10.
var perDecade = []float64{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8}

type point struct {
	at stream.Micros
	ms float64
}

// manyRuns is from how many runs on heat maps have half as many bins of time, so that the file stays small.
const manyRuns = 5

// heatOf bins points. Times below 0.1 ms are in the first bin, which begins at 0. of is the number of runs.
func heatOf(latency string, points []point, until stream.Micros, of int) heat {
	width := binWidth(until) * 2
	if of >= manyRuns {
		width *= 2
	}
	largest, smallest := 0.0, math.Inf(1)
	for _, p := range points {
		largest, smallest = max(largest, p.ms), min(smallest, p.ms)
	}
	edges := []float64{0}
	for unit := 0.1; edges[len(edges)-1] <= largest; unit *= 10 {
		for _, x := range perDecade {
			edges = append(edges, round(unit*x))
		}
	}
	for len(edges) > 2 && edges[1] <= smallest {
		edges = edges[1:]
	}
	for len(edges) > 2 && edges[len(edges)-2] > largest {
		edges = edges[:len(edges)-1]
	}
	n := len(edges) - 1
	counts := make([]int, int((until+width-1)/width)*n)
	for _, p := range points {
		bin, exact := slices.BinarySearch(edges, p.ms)
		if !exact {
			bin--
		}
		counts[int(p.at/width)*n+min(max(bin, 0), n-1)]++
	}
	h := heat{Latency: latency, WidthS: float64(width) / 1e6, Edges: edges}
	for i, k := range counts {
		if k > 0 {
			h.Cells = append(h.Cells, [3]int{i / n, i % n, k})
		}
	}
	return h
}
