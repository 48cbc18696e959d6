package summarize

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/fitness"
)

// line is a row of a table of runs. key marks rows that are also shown for many runs.
type line struct {
	name string
	key  bool
	// text is the cell of a column; nil for a number.
	text   func(c *column) string
	number func(c *column) *float64
	format string
}

// cell is the cell of a column for people, - if it is missing.
func (l *line) cell(c *column) string {
	if l.text != nil {
		return l.text(c)
	}
	return orDash(l.format, l.number(c))
}

// exact is the cell of a column for programs, "" if it is missing.
func (l *line) exact(c *column) string {
	if l.text == nil {
		if x := l.number(c); x != nil {
			return exact(*x)
		}
	} else if text := l.text(c); text != "-" {
		return text
	}
	return ""
}

// scoreLines are the rows about the score.
func (r *analysis) scoreLines() (lines []line) {
	if r.defaultFitness {
		return nil
	}
	lines = append(lines, line{name: "score", key: true, format: "%.4f", number: func(c *column) *float64 {
		if c.result == nil {
			return new(float64)
		}
		return &c.result.Score
	}})
	blank := r.fitness.Empty()
	for i, g := range blank.Gates {
		lines = append(lines, line{name: "gate " + g.Name, text: func(c *column) string {
			switch {
			case c.result == nil:
				return "-"
			case c.result.Gates[i].Passed:
				return "passed"
			}
			return fmt.Sprintf("FAILED %.4f", c.result.Gates[i].Distance)
		}})
	}
	values := func(what string, of func(*fitness.Result) []fitness.Value) {
		for i, v := range of(blank) {
			lines = append(lines, line{name: what + " " + v.Name, key: what == "objective", format: "%.6g",
				number: func(c *column) *float64 {
					if c.result == nil {
						return nil
					}
					return of(c.result)[i].Value
				}})
		}
	}
	values("objective", func(r *fitness.Result) []fitness.Value { return r.Objectives })
	values("feature", func(r *fitness.Result) []fitness.Value { return r.Features })
	ofCandidate := func(name string, text func(*candidate) string) {
		lines = append(lines, line{name: name, key: true, text: func(c *column) string {
			if c.candidate == nil {
				return "-"
			}
			return text(c.candidate)
		}})
	}
	if len(r.candidates) < len(r.runs) {
		ofCandidate("candidate", func(c *candidate) string { return c.name })
		ofCandidate("candidate's score", func(c *candidate) string { return fmt.Sprintf("%.4f", c.score()) })
	}
	if len(blank.Objectives) > 0 {
		ofCandidate("pareto rank", func(c *candidate) string { return strconv.Itoa(c.pareto.Rank) })
	}
	return lines
}

// exact formats x with all digits that are needed.
func exact(x float64) string {
	if math.Abs(x) < 1e15 && math.Abs(x) >= 1e-6 || x == 0 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// metricLines are the rows about metrics; a table omits those that no run has. decimals <
// 0 marks a ratio, shown in percent.
var metricLines = []struct {
	name, path string
	decimals   int
	key        bool
}{
	{"requests offered", "requests.offered", 0, true}, {"completed", "requests.completed", 0, true},
	{"rejected", "requests.rejected", 0, true},
	{"timed out", "requests.timed_out", 0, true}, {"failed", "requests.failed", 0, false},
	{"unfinished", "requests.unfinished", 0, false},
	{"met targets, %", "goodput.ratio", -1, true}, {"goodput, requests/s", "goodput.rps", 2, false},
	{"TTFT mean, ms", "ttft.mean", 2, false}, {"TTFT p50, ms", "ttft.p50", 2, false},
	{"TTFT p99, ms", "ttft.p99", 2, true},
	{"TPOT mean, ms", "tpot.mean", 2, false}, {"TPOT p50, ms", "tpot.p50", 2, false},
	{"TPOT p99, ms", "tpot.p99", 2, true},
	{"ITL p99, ms", "itl.p99", 2, false}, {"E2E mean, ms", "e2e.mean", 2, false}, {"E2E p50, ms", "e2e.p50", 2, false},
	{"E2E p99, ms", "e2e.p99", 2, true},
	{"queue mean, ms", "queue.mean", 2, false}, {"queue p99, ms", "queue.p99", 2, false},
	{"requests/s", "throughput.rps", 2, true}, {"output tokens/s", "throughput.output_tok_s", 0, false},
	{"load over capacity", "load.offered_over_capacity", 3, false},
	{"KV used, mean, %", "kv.util_mean", -1, false}, {"KV used, maximum, %", "kv.util_max", -1, false},
	{"prompt tokens cached, %", "kv.prefix_hit_ratio", -1, true},
	{"prompt tokens loaded from cpu, %", "kv.tiers.cpu.hit_ratio", -1, false},
	{"prompt tokens loaded from storage, %", "kv.tiers.storage.hit_ratio", -1, false},
	{"KV load wait mean, ms", "kv.tiers.cpu.load_wait_ms.mean", 2, false},
	{"KV promotion wait mean, ms", "kv.tiers.storage.load_wait_ms.mean", 2, false},
	{"prompts from a prefill pool, %", "pd.share", -1, false},
	{"KV wait after prefill mean, ms", "pd.kv_wait.mean", 2, false},
	{"preemptions", "kv.preemptions", 0, false},
	{"Jain over tenants", "fairness.jain", 4, false}, {"GPU seconds", "cost.gpu_s", 1, false},
	{"GPU seconds/million tokens", "cost.per_million_tokens", 1, false},
	{"the same within SLO", "cost.per_million_tokens_within_slo", 1, false},
	{"energy, J/output token", "energy.j_per_output_token", 3, false}, {"power, mean, W", "energy.mean_w", 0, false},
	{"CO2, g", "energy.carbon_g", 1, false},
	{"replicas, mean", "scale.avg_replicas", 2, false},
	{"wait for capacity, ms", "scale.wait_for_capacity_ms", 1, false},
	{"availability", "failures.availability", 4, false},
	{"time to recover, ms", "failures.recover_ms", 0, false},
	{"avoidable regret, ms", "regret.avoidable_ms", 1, false},
}

// lines returns the rows of the table for people.
func (r *analysis) lines(columns []column) []line {
	lines := append(r.integrityLine(), r.scoreLines()...)
	add := func(name, path string, decimals int, key bool) {
		has := func(c column) bool { _, ok := c.values[path]; return ok }
		if !slices.ContainsFunc(columns, has) {
			return
		}
		factor := 1.0
		if decimals < 0 {
			factor, decimals = 100, 1
		}
		lines = append(lines, line{name: name, key: key, format: fmt.Sprintf("%%.%df", decimals),
			number: func(c *column) *float64 {
				x, ok := c.values[path]
				if !ok {
					return nil
				}
				x *= factor
				return &x
			}})
	}
	for _, m := range metricLines {
		add(m.name, m.path, m.decimals, m.key)
	}
	if slices.ContainsFunc(columns, func(c column) bool { return c.raw != nil && len(c.raw.Replicas) > 1 }) {
		lines = append(lines, line{name: "least-most requests of a replica, %", key: true, text: replicaShares})
	}
	for _, path := range paths(columns) {
		key := strings.TrimPrefix(strings.TrimSuffix(path, ".requests.offered"), "cls")
		if class, err := strconv.Unquote(strings.Trim(key, "[]")); err == nil {
			add("met targets, %: "+class, "cls"+key+".goodput.ratio", -1, false)
			add("TTFT p99, ms: "+class, "cls"+key+".ttft.p99", 2, false)
		}
	}
	return lines
}

// replicaShares is the smallest and the largest share of the requests that a replica received, in percent.
func replicaShares(c *column) string {
	if c.raw == nil || len(c.raw.Replicas) == 0 {
		return "-"
	}
	least, most, all := int64(math.MaxInt64), int64(0), int64(0)
	for i := range c.raw.Replicas {
		n := c.raw.Replicas[i].Requests
		least, most, all = min(least, n), max(most, n), all+n
	}
	percent := func(n int64) float64 { return 100 * float64(n) / float64(max(all, 1)) }
	return fmt.Sprintf("%.1f-%.1f", percent(least), percent(most))
}
