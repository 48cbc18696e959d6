package diff

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/stream"
	"blis/pkg/texttab"
)

// latencies is the table of the main latencies.
func (d *Document) latencies() *texttab.Table {
	t := &texttab.Table{}
	t.Row("latency, ms", "a", "b", "b-a", "%", "95 % interval of b-a")
	for _, of := range []struct{ name, path string }{{"TTFT", "ttft"}, {"TPOT", "tpot"}, {"ITL", "itl"}, {"E2E", "e2e"},
		{"queue", "queue"}, {"session E2E", "sessions.e2e"}, {"session critical", "sessions.critical_path"},
		{"session tools", "sessions.tool_wait"}} {
		for _, stat := range []string{"mean", "p50", "p90", "p99"} {
			addMetric(t, of.name+" "+stat, d.Metrics.at(of.path+"."+stat), millisecond)
		}
	}
	return t
}

// otherMetrics is the table of the other main metrics.
func (d *Document) otherMetrics() *texttab.Table {
	t := &texttab.Table{}
	t.Row("metric", "a", "b", "b-a", "%", "95 % interval of b-a")
	for _, of := range []struct{ name, path string }{
		{"completed", "requests.completed"}, {"rejected", "requests.rejected"}, {"timed out", "requests.timed_out"},
		{"failed", "requests.failed"}, {"unfinished", "requests.unfinished"}, {"requests/s", "throughput.rps"},
		{"output tokens/s", "throughput.output_tok_s"}, {"goodput, requests/s", "goodput.rps"},
		{"targets met", "goodput.ratio"}, {"sessions completed", "sessions.completed"},
		{"sessions broken", "sessions.broken"}, {"sessions unfinished", "sessions.unfinished"},
		{"steps per session", "sessions.steps.mean"}, {"iterations per session", "sessions.iterations.mean"},
		{"parallel calls completed", "sessions.fan_out_utilization"},
		{"sessions with targets met", "sessions.attainment"}, {"prompt tokens cached", "kv.prefix_hit_ratio"},
		{"prompt tokens loaded from cpu", "kv.tiers.cpu.hit_ratio"},
		{"prompt tokens loaded from storage", "kv.tiers.storage.hit_ratio"},
		{"KV wait after prefill mean, ms", "pd.kv_wait.mean"},
		{"preemptions", "kv.preemptions"}, {"KV blocks in use", "kv.util_mean"}, {"fairness, Jain", "fairness.jain"},
		{"GPU seconds", "cost.gpu_s"}, {"energy, J/output token", "energy.j_per_output_token"},
	} {
		isZero := func(x *float64) bool { return x == nil || *x == 0 }
		if m := d.Metrics.at(of.path); !isZero(m.A) || !isZero(m.B) {
			addMetric(t, of.name, m, number)
		}
	}
	return t
}

// addMetric adds a row for m; show formats its numbers.
func addMetric(t *texttab.Table, name string, m *Metric, show func(float64) string) {
	if m.A == nil && m.B == nil {
		return
	}
	interval := "  "
	if m.CI != nil {
		interval = signed(&m.CI.Lo, show) + " .. " + signed(&m.CI.Hi, show) + m.star()
	}
	relative := func(x float64) string { return percent(100 * x) }
	t.Row(name, numberOrDash(m.A, show), numberOrDash(m.B, show), signed(m.Diff, show),
		numberOrDash(m.RelativeDiff, relative), interval)
}

// star returns a star if the interval of m excludes 0.
func (m *Metric) star() string {
	if m.CI != nil && (m.CI.Lo > 0 || m.CI.Hi < 0) {
		return " *"
	}
	return "  "
}

// groupNames are what groups of metrics are by, given the first name of their paths.
var groupNames = map[string]string{"cls": "class", "tenants": "tenant", "models": "model", "replicas": "replica"}

// groupTable is the table of classes, tenants, models or replicas.
func (d *Document) groupTable(of string) *texttab.Table {
	t := &texttab.Table{}
	headers := []string{"TTFT ms p50", "p99", "TPOT ms p50", "E2E ms p50", "p99", "targets met"}
	paths := []string{"ttft.p50", "ttft.p99", "tpot.p50", "e2e.p50", "e2e.p99", "goodput.ratio"}
	if of == "replicas" {
		headers = []string{"requests", "completed", "busy", "cached", "preemptions", "peak queue"}
		paths = []string{"requests", "completed", "utilization", "prefix_hit_ratio", "preemptions", "peak_queue"}
	}
	t.Row("by "+groupNames[of]+", a -> b", headers...)
	var seen []string // in the order of the tree
	for _, m := range d.Metrics {
		if key, ok := strings.CutPrefix(m.Path, of+"["); ok {
			key, _, _ = strings.Cut(key, "]")
			seen = append(seen, key)
		}
	}
	seen = slices.Compact(seen)
	if of != "cls" && of != "replicas" && len(seen) < 2 {
		return t
	}
	t.Omitted = len(seen) - maxRows
	for _, key := range seen[:min(len(seen), maxRows)] {
		prefix := of + "[" + key + "]."
		head := strings.Trim(key, `"`)
		if i, err := strconv.Atoi(key); err == nil && i < len(d.replicas) {
			head = d.replicas[i]
		}
		var row []string
		for _, path := range paths {
			m := d.Metrics.at(prefix + path)
			row = append(row, numberOrDash(m.A, number)+" -> "+numberOrDash(m.B, number)+m.star())
		}
		t.Row(stream.Printable(head), row...)
	}
	return t
}

func numberOrDash(x *float64, show func(float64) string) string {
	if x == nil {
		return "-"
	}
	return show(*x)
}

func signed(x *float64, show func(float64) string) string {
	if x != nil && *x > 0 {
		return "+" + show(*x)
	}
	return numberOrDash(x, show)
}

// mostPercent is the largest percentage in a text: beyond it the first number is so near 0 that only the difference
// helps.
const mostPercent = 1000

// percent formats a number of percent with its sign and one decimal.
func percent(x float64) string {
	if x > mostPercent {
		return fmt.Sprintf("> %+d", mostPercent)
	}
	return fmt.Sprintf("%+.1f", x)
}

// unsignedPercent formats a mean absolute error in percent with two decimals.
func unsignedPercent(x float64) string {
	if x > mostPercent {
		return fmt.Sprintf("> %d", mostPercent)
	}
	return millisecond(x)
}

// millisecond formats a time in ms with two decimals.
func millisecond(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// number formats x with about four digits, integers with all.
func number(x float64) string {
	switch size := math.Abs(x); {
	case x == math.Trunc(x) && size < 1e15:
		return strconv.FormatInt(int64(x), 10)
	case size >= 1000:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case size >= 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// truncate shortens s to at most limit bytes.
func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit-3] + "..."
}
