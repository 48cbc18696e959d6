package summarize

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"blis/pkg/fitness"
	"blis/pkg/metrics"
)

// line is a row of a table of runs. key marks rows that are also shown for many runs.
type line struct {
	name  string
	key   bool
	cell  func(c *column) string
	exact func(c *column) string // for programs; nil is cell
}

// scoreLines are the rows about the score.
func (r *analysis) scoreLines() (lines []line) {
	if r.defaultFitness {
		return nil
	}
	lines = append(lines, line{"score", true,
		func(c *column) string { return c.scoreText(func(x float64) string { return fmt.Sprintf("%.4f", x) }) },
		func(c *column) string { return c.scoreText(exact) }})
	blank := r.fitness.Empty()
	for i, g := range blank.Gates {
		lines = append(lines, line{name: "gate " + g.Name, cell: func(c *column) string {
			switch {
			case c.result == nil:
				return "-"
			case c.result.Gates[i].Passed:
				return "passed"
			}
			return fmt.Sprintf("FAILED %.4f", c.result.Gates[i].Distance)
		}})
	}
	values := func(what string, of []fitness.Value, get func(*fitness.Result) []fitness.Value) {
		for i, v := range of {
			value := func(c *column, format func(float64) string) string {
				if c.result == nil || get(c.result)[i].Value == nil {
					return "-"
				}
				return format(*get(c.result)[i].Value)
			}
			lines = append(lines, line{what + " " + v.Name, what == "objective",
				func(c *column) string { return value(c, func(x float64) string { return fmt.Sprintf("%.6g", x) }) },
				func(c *column) string { return value(c, exact) }})
		}
	}
	values("objective", blank.Objectives, func(r *fitness.Result) []fitness.Value { return r.Objectives })
	values("feature", blank.Features, func(r *fitness.Result) []fitness.Value { return r.Features })
	grouped := len(r.candidates) < len(r.runs)
	if grouped {
		lines = append(lines, line{name: "candidate", key: true, cell: func(c *column) string {
			if c.candidate == nil {
				return "-"
			}
			return c.candidate.name
		}}, line{name: "candidate's score", key: true, cell: func(c *column) string {
			if c.candidate == nil {
				return "-"
			}
			return fmt.Sprintf("%.4f", c.candidate.score())
		}})
	}
	if len(blank.Objectives) > 0 {
		lines = append(lines, line{name: "pareto rank", key: true, cell: func(c *column) string {
			if c.candidate == nil || c.candidate.pareto == nil {
				return "-"
			}
			return strconv.Itoa(c.candidate.pareto.Rank)
		}})
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

func (c *column) scoreText(format func(float64) string) string {
	if c.result == nil {
		return format(0)
	}
	return format(c.result.Score)
}

// metricLines are the rows about metrics; a table omits those that no run has. decimals <
// 0 marks a ratio, shown in percent.
var metricLines = []struct {
	name, path string
	decimals   int
	key        bool
}{
	{"requests offered", "requests.offered", 0, true}, {"completed", "requests.completed", 0, false},
	{"rejected", "requests.rejected", 0, false},
	{"timed out", "requests.timed_out", 0, false}, {"failed", "requests.failed", 0, false},
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
	{"prompt tokens cached, %", "kv.prefix_hit_ratio", -1, true}, {"preemptions", "kv.preemptions", 0, false},
	{"Jain over tenants", "fairness.jain", 4, false}, {"GPU seconds", "cost.gpu_s", 1, false},
	{"GPU seconds/million tokens", "cost.per_million_tokens", 1, false},
	{"avoidable regret, ms", "regret.avoidable_ms", 1, false},
}

// lines returns the rows of the table for people.
func (r *analysis) lines(columns []column) []line {
	lines := r.scoreLines()
	has := func(path string) bool {
		for i := range columns {
			if _, ok := columns[i].values[path]; ok {
				return true
			}
		}
		return false
	}
	add := func(name, path string, decimals int, key bool) {
		if !has(path) {
			return
		}
		lines = append(lines, line{name: name, key: key, cell: func(c *column) string {
			x, ok := c.values[path]
			switch {
			case !ok:
				return "-"
			case decimals < 0:
				return fmt.Sprintf("%.1f", 100*x)
			}
			return fmt.Sprintf("%.*f", decimals, x)
		}})
	}
	for _, m := range metricLines {
		add(m.name, m.path, m.decimals, m.key)
	}
	for _, class := range r.classes(columns) {
		add("met targets, %: "+class, metrics.SubPath("cls", class)+".goodput.ratio", -1, false)
		add("TTFT p99, ms: "+class, metrics.SubPath("cls", class)+".ttft.p99", 2, false)
	}
	return lines
}

// classes returns the classes of all columns in order of appearance.
func (r *analysis) classes(columns []column) (all []string) {
	seen := map[string]bool{}
	for i := range columns {
		for _, v := range columns[i].metrics {
			rest, ok := strings.CutPrefix(v.Path, "cls[")
			if !ok {
				continue
			}
			class, err := strconv.QuotedPrefix(rest)
			if err == nil {
				class, err = strconv.Unquote(class)
			}
			if err == nil && !seen[class] {
				seen[class] = true
				all = append(all, class)
			}
		}
	}
	return all
}
