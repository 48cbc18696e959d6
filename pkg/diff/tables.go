package diff

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"blis/pkg/stream"
)

// latencies is the table of the main distributions.
func (d *Document) latencies() *table {
	t := &table{}
	t.row("latency, ms", "a", "b", "b-a", "%", "95 % interval of b-a")
	for _, of := range []struct{ name, path string }{{"TTFT", "ttft"}, {"TPOT", "tpot"}, {"ITL", "itl"}, {"E2E", "e2e"}, {"queue", "queue"},
		{"session E2E", "session.e2e"}, {"session critical", "session.critical_path"}, {"session tools", "session.tool_wait"}} {
		for _, stat := range []string{"mean", "p50", "p90", "p99"} {
			t.metric(of.name+" "+stat, d.Metrics.at(of.path+"."+stat), millisecond)
		}
	}
	return t
}

// others is the table of the main metrics that are no times.
func (d *Document) others() *table {
	t := &table{}
	t.row("metric", "a", "b", "b-a", "%", "95 % interval of b-a")
	for _, of := range []struct{ name, path string }{
		{"completed", "requests.completed"}, {"rejected", "requests.rejected"}, {"timed out", "requests.timed_out"}, {"failed", "requests.failed"},
		{"unfinished", "requests.unfinished"}, {"requests/s", "throughput.rps"}, {"output tokens/s", "throughput.output_tok_s"},
		{"goodput, requests/s", "goodput.rps"}, {"targets met", "goodput.ratio"},
		{"sessions completed", "session.completed"}, {"sessions broken", "session.broken"}, {"sessions unfinished", "session.unfinished"},
		{"steps a session", "session.steps.mean"}, {"iterations a session", "session.iterations.mean"}, {"fan-out answered", "session.fan_out_utilization"},
		{"sessions with targets met", "session.attainment"}, {"prompt tokens cached", "kv.prefix_hit_ratio"},
		{"preemptions", "kv.preemptions"}, {"KV blocks in use", "kv.util_mean"}, {"fairness, Jain", "fairness.jain"}, {"GPU seconds", "cost.gpu_s"},
	} {
		m := d.Metrics.at(of.path)
		if m.A == nil && m.B == nil || value(m.A) == 0 && value(m.B) == 0 {
			continue
		}
		t.metric(of.name, m, number)
	}
	return t
}

// metric adds a row for m, its numbers written by show.
func (t *table) metric(name string, m *Metric, show func(float64) string) {
	if m.A == nil && m.B == nil {
		return
	}
	interval := "  "
	if m.Lo != nil {
		interval = signed(m.Lo, show) + " .. " + signed(m.Hi, show) + m.mark()
	}
	rel := "-"
	if m.Rel != nil {
		rel = fmt.Sprintf("%+.1f", 100**m.Rel)
	}
	t.row(name, plain(m.A, show), plain(m.B, show), signed(m.Abs, show), rel, interval)
}

// mark is a star where the interval of m does not hold 0.
func (m *Metric) mark() string {
	if m.Lo != nil && (*m.Lo > 0 || *m.Hi < 0) {
		return " *"
	}
	return "  "
}

// parts is the table of classes, tenants, models or replicas.
func (d *Document) parts(of string) *table {
	t := &table{}
	heads := []string{"TTFT ms p50", "p99", "TPOT ms p50", "E2E ms p50", "p99", "targets met"}
	paths := []string{"ttft.p50", "ttft.p99", "tpot.p50", "e2e.p50", "e2e.p99", "goodput.ratio"}
	if of == "replica" {
		heads = []string{"requests", "completed", "busy", "cached", "preemptions", "peak queue"}
		paths = []string{"requests", "completed", "utilization", "prefix_hit_ratio", "preemptions", "peak_queue"}
	}
	name, show := of, number
	if of == "cls" {
		name = "class"
	}
	t.row("by "+name+", a -> b", heads...)
	var seen []string // in the order of the tree
	for _, m := range d.Metrics {
		key, ok := strings.CutPrefix(m.Path, of+"[")
		if !ok {
			continue
		}
		key, _, _ = strings.Cut(key, "]") // of what is quoted, the rest does not matter here
		if len(seen) > 0 && seen[len(seen)-1] == key {
			continue
		}
		seen = append(seen, key)
	}
	if of != "cls" && of != "replica" && len(seen) < 2 {
		return t
	}
	t.more = len(seen) - maxRows
	for _, key := range seen[:min(len(seen), maxRows)] {
		prefix := of + "[" + key + "]."
		head := strings.Trim(key, `"`)
		if i, err := strconv.Atoi(key); err == nil && i < len(d.replicas) {
			head = d.replicas[i]
		}
		var row []string
		for _, path := range paths {
			m := d.Metrics.at(prefix + path)
			row = append(row, plain(m.A, show)+" -> "+plain(m.B, show)+m.mark())
		}
		t.row(stream.Printable(head), row...)
	}
	return t
}

func value(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

func plain(x *float64, show func(float64) string) string {
	if x == nil {
		return "-"
	}
	return show(*x)
}

func signed(x *float64, show func(float64) string) string {
	if x != nil && *x > 0 {
		return "+" + show(*x)
	}
	return plain(x, show)
}

// millisecond is a time in ms with two digits behind the point.
func millisecond(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// number is x with about four digits, whole numbers with all.
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

// table is rows of cells, the first of them the head.
type table struct {
	rows [][]string
	// left is how many columns stand to the left: 1 if it is 0.
	left int
	// more rows there are than are shown, if positive.
	more int
}

func (t *table) row(first string, others ...string) {
	t.rows = append(t.rows, append([]string{first}, others...))
}

// withoutEmpty is the table without the columns that hold nothing.
func (t *table) withoutEmpty() *table {
	kept := &table{rows: make([][]string, len(t.rows)), left: t.left, more: t.more}
	for i := range t.rows[0] {
		empty := true
		for _, row := range t.rows[1:] {
			empty = empty && row[i] == "-"
		}
		for k, row := range t.rows {
			if !empty {
				kept.rows[k] = append(kept.rows[k], row[i])
			}
		}
	}
	return kept
}

// append adds the table to b.
func (t *table) append(b []byte) []byte {
	width := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	for _, row := range t.rows {
		line := fmt.Sprintf("%-*s", width[0], row[0])
		for i, cell := range row[1:] {
			if i+1 < t.left {
				line += fmt.Sprintf("  %-*s", width[i+1], cell)
			} else {
				line += fmt.Sprintf("  %*s", width[i+1], cell)
			}
		}
		b = append(append(b, strings.TrimRight(line, " ")...), '\n')
	}
	if t.more > 0 {
		b = fmt.Appendf(b, "... and %d more: --format json\n", t.more)
	}
	return b
}

// cut is s, cut off where it is longer than most.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most-3] + "..."
}
