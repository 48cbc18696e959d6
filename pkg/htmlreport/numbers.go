package htmlreport

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/figures"
	"blis/pkg/metrics"
	"blis/pkg/resample"
	"blis/pkg/stat"
)

// numbers are the rows of the table of numbers: paths of metrics, their names and units.
var numbers = []struct{ path, name, unit string }{
	{"goodput.ratio", "SLO targets met", "%"},
	{"requests.offered", "requests", ""},
	{"requests.completed", "completed", ""},
	{"ttft.p50", "TTFT median", "ms"}, {"ttft.p90", "TTFT p90", "ms"}, {"ttft.p99", "TTFT p99", "ms"},
	{"ttft.mean", "TTFT mean", "ms"},
	{"tpot.p50", "TPOT median", "ms"}, {"tpot.p99", "TPOT p99", "ms"}, {"tpot.mean", "TPOT mean", "ms"},
	{"e2e.p50", "E2E median", "ms"}, {"e2e.p90", "E2E p90", "ms"}, {"e2e.p99", "E2E p99", "ms"},
	{"e2e.mean", "E2E mean", "ms"},
	{"queue.p50", "queue median", "ms"}, {"queue.p99", "queue p99", "ms"}, {"queue.mean", "queue mean", "ms"},
	{"throughput.rps", "throughput", "requests/s"}, {"throughput.output_tok_s", "output", "tokens/s"},
	{"goodput.rps", "goodput", "requests/s"},
	{"kv.prefix_hit_ratio", "prompt tokens cached", "%"},
	{"kv.util_mean", "KV blocks used, mean", "%"}, {"kv.util_max", "KV blocks used, maximum", "%"},
	{"kv.preemptions", "preemptions", ""},
	{"load.offered_over_capacity", "load", "%"},
	{"duration_s", "duration", "s"},
	{"cost.gpu_s", "GPU time", "s"}, {"cost.replica_s", "replica time", "s"},
	{"cost.per_million_tokens", "GPU time per million tokens", "s"}, {"cost.total", "price", ""},
	{"energy.total_j", "energy", "J"}, {"energy.j_per_output_token", "energy per output token", "J"},
	{"energy.mean_w", "mean power", "W"}, {"energy.carbon_g", "CO2", "g"},
}

// numberRow is a row of the table of numbers.
type numberRow struct {
	Path, Name, Unit string
	Cells            []cell
}

// cell is a number of one run; Value is nil if the run does not have it.
type cell struct {
	Value *float64
	// CI is the 95 % confidence interval of the number, Diff that of the difference from the first run; nil if unknown.
	CI, Diff *stat.Interval
	percent  bool
}

// Text is the number with its unit.
func (c cell) Text() string {
	if c.Value == nil {
		return "–"
	}
	return c.format(*c.Value)
}

// Exact is the number as in the metrics, for programs.
func (c cell) Exact() string {
	if c.Value == nil {
		return ""
	}
	return strconv.FormatFloat(*c.Value, 'g', -1, 64)
}

// Range is the confidence interval, "" if unknown or if it is a point.
func (c cell) Range() string {
	if c.CI == nil || c.CI.Lo == c.CI.Hi {
		return ""
	}
	return c.format(c.CI.Lo) + " – " + c.format(c.CI.Hi)
}

// DiffRange is the confidence interval of the difference from the first run, "" if unknown.
func (c cell) DiffRange() string {
	if c.Diff == nil {
		return ""
	}
	if c.Diff.Lo == 0 && c.Diff.Hi == 0 {
		return "0"
	}
	return signed(c.format(c.Diff.Lo)) + " … " + signed(c.format(c.Diff.Hi))
}

// Differs reports whether the confidence interval of the difference excludes 0.
func (c cell) Differs() bool { return c.Diff != nil && (c.Diff.Lo > 0 || c.Diff.Hi < 0) }

func signed(text string) string {
	if strings.HasPrefix(text, "-") {
		return "−" + text[1:]
	}
	return "+" + text
}

// format writes at most four significant digits, and all digits of the integer part.
func (c cell) format(x float64) string {
	end := ""
	if c.percent {
		x, end = 100*x, " %"
	}
	digits := 3
	for limit := 10.0; digits > 0 && (x >= limit || -x >= limit); limit *= 10 {
		digits--
	}
	text := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	whole, rest, hasRest := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if hasRest {
		whole += "." + rest
	}
	return sign + whole + end
}

// numbersOf returns the rows of the table: those that a run has.
func numbersOf(runs []*Run) (table []numberRow) {
	values := make([]map[string]float64, len(runs))
	for i, r := range runs {
		if r.Metrics != nil {
			values[i] = metrics.ByPath(r.Metrics)
		}
	}
	cis := intervals(runs)
	for _, n := range numbers {
		row := numberRow{Path: n.path, Name: n.name, Unit: n.unit}
		any := false
		for i := range runs {
			c := cell{percent: n.unit == "%"}
			if x, ok := values[i][n.path]; ok {
				c.Value, any = &x, true
			}
			if c.Value != nil && !strings.HasPrefix(n.path, "requests.") { // numbers of requests are given
				c.CI, c.Diff = cis[i].own[n.path], cis[i].difference[n.path]
			}
			row.Cells = append(row.Cells, c)
		}
		if row.Unit == "%" {
			row.Unit = ""
		}
		if any {
			table = append(table, row)
		}
	}
	return table
}

// intervalsOf returns the confidence intervals of the numbers of a run, by path.
func intervalsOf(table []numberRow, run int) map[string][2]float64 {
	all := map[string][2]float64{}
	for _, n := range table {
		if ci := n.Cells[run].CI; ci != nil {
			all[n.Path] = [2]float64{round(ci.Lo), round(ci.Hi)}
		}
	}
	return all
}

// ranges are the confidence intervals of the metrics of a run, by path: of the numbers, and of their differences from
// those of the first run.
type ranges struct{ own, difference map[string]*stat.Interval }

// intervals computes the confidence intervals of all runs. Runs of the workload of the first one share its bootstrap
// samples, so that the noise of the workload cancels in differences.
func intervals(runs []*Run) []ranges {
	all := make([]ranges, len(runs))
	var paired []int
	for i := len(runs) - 1; i >= 0; i-- { // the differences of interest are from the first run, which is the last here
		if runs[i].usable() && runs[0].usable() && runs[i].Workload == runs[0].Workload {
			paired = append(paired, i)
		}
	}
	first := map[string][]float64{}
	var reference *resample.Bootstrap
	if len(paired) > 0 {
		reference = resample.New(resample.Source(0), byArrival(runs, paired)...)
		statistics := make([]map[string][]float64, len(paired))
		for k, i := range paired {
			run := reference.Run(k, runs[i].Metrics)
			statistics[k] = run.Statistics(resample.Set{Rows: run.All(), NotIssued: true})[0]
		}
		first = statistics[len(paired)-1]
		for k, i := range paired {
			all[i] = rangesOf(reference, statistics[k], first, i > 0)
		}
	}
	for i, r := range runs {
		if !r.usable() || slices.Contains(paired, i) {
			continue
		}
		b := resample.New(resample.Source(uint64(i)), byArrival(runs, []int{i})...)
		run := b.Run(0, r.Metrics)
		narrower := b
		if reference != nil && reference.Blocks() < b.Blocks() {
			narrower = reference
		}
		own := run.Statistics(resample.Set{Rows: run.All(), NotIssued: true})[0]
		all[i] = rangesOf(narrower, own, first, reference != nil)
	}
	return all
}

// rangesOf returns the intervals of statistics and, if compared, of their differences from first.
func rangesOf(b *resample.Bootstrap, statistics, first map[string][]float64, compared bool) ranges {
	r := ranges{map[string]*stat.Interval{}, map[string]*stat.Interval{}}
	if b.Blocks() < stat.MinBlocks {
		return r
	}
	for _, n := range numbers {
		values, ok := statistics[n.path]
		if !ok {
			continue
		}
		if ci, ok := b.Interval(values); ok {
			r.own[n.path] = &ci
		}
		if base, ok := first[n.path]; ok && compared {
			if ci, ok := b.Difference(base, values); ok {
				r.difference[n.path] = &ci
			}
		}
	}
	return r
}

// byArrival returns the requests of some runs in order of arrival: one that any of them has is at the same place in
// each, nil for those that a run does not have.
func byArrival(runs []*Run, which []int) [][]*resample.Request {
	if len(which) == 1 {
		return [][]*resample.Request{runs[which[0]].byArrival()}
	}
	type arrival struct {
		at int64
		id string
	}
	var all []arrival
	known := map[string]bool{}
	for _, i := range which {
		rows := runs[i].Collector.Rows()
		for k := range rows {
			if q := &rows[k]; q.State != 0 && !known[q.ID] {
				known[q.ID] = true
				all = append(all, arrival{q.Arrival, q.ID})
			}
		}
	}
	slices.SortFunc(all, func(a, b arrival) int { return resample.CompareArrivals(a.at, b.at, a.id, b.id) })
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	var requests [][]*resample.Request
	for _, i := range which {
		requests = append(requests, runs[i].inOrder(ids))
	}
	return requests
}

// byArrival returns the requests in order of arrival.
func (r *Run) byArrival() []*resample.Request {
	rows := r.Collector.Rows()
	order := make([]stat.Keyed, 0, len(rows))
	for i := range rows {
		if q := &rows[i]; q.State != 0 {
			order = append(order, stat.Keyed{Key: uint64(q.Arrival), Tag: uint32(i)})
		}
	}
	order = stat.SortKeyed(order, make([]stat.Keyed, len(order)))
	requests := make([]*resample.Request, len(order))
	for from, until := 0, 0; from < len(order); from = until {
		for until = from; until < len(order) && order[until].Key == order[from].Key; until++ {
		}
		slices.SortFunc(order[from:until], func(a, b stat.Keyed) int {
			return resample.CompareArrivals(0, 0, rows[a.Tag].ID, rows[b.Tag].ID)
		})
	}
	for i, k := range order {
		requests[i] = &rows[k.Tag].Request
	}
	return requests
}

// inOrder returns the requests in the given order, nil for those that the run does not have.
func (r *Run) inOrder(order []string) []*resample.Request {
	rows := r.Collector.Rows()
	byID := make(map[string]*resample.Request, len(rows))
	for i := range rows {
		if q := &rows[i]; q.State != 0 {
			byID[q.ID] = &q.Request
		}
	}
	requests := make([]*resample.Request, len(order))
	for i, id := range order {
		requests[i] = byID[id]
	}
	return requests
}

// usable reports whether the run has requests for confidence intervals.
func (r *Run) usable() bool {
	return r.Metrics != nil && r.Collector != nil &&
		slices.ContainsFunc(r.Collector.Rows(), func(q figures.Row) bool { return q.State != 0 })
}

// change is the difference of a number from that of the first run, in percent of it. No number falls by more than
// 100 %.
type change struct {
	Run     string  `json:"run"`
	Name    string  `json:"name"`
	Path    string  `json:"path"`
	Percent float64 `json:"percent"`
	Lo      float64 `json:"lo"`
	Hi      float64 `json:"hi"`
	Differs bool    `json:"differs"`
}

// changes returns the differences that have a confidence interval.
func changes(runs []*Run, table []numberRow) (all []change) {
	for _, n := range table {
		base := n.Cells[0].Value
		if base == nil || *base == 0 {
			continue
		}
		for i, c := range n.Cells {
			if i == 0 || c.Value == nil || c.Diff == nil {
				continue
			}
			all = append(all, change{Run: runs[i].Name, Name: n.Name, Path: n.Path, Differs: c.Differs(),
				Percent: round(100 * (*c.Value - *base) / *base), Lo: round(max(-100, 100*c.Diff.Lo / *base)),
				Hi: round(100 * c.Diff.Hi / *base)})
		}
	}
	return all
}

// round keeps three digits after the point, which is enough for a figure.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }
