package diff

import (
	"fmt"
	"strings"

	"blis/pkg/stream"
)

// written are the times as people call them.
var written = map[string]string{"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E", "queue": "queue"}

// append adds how close the simulation comes, for people.
func (f *Fidelity) append(b []byte) []byte {
	how := "paired by " + f.Pairing
	if f.Pairing == byOrder {
		how += " of arrival"
	}
	if f.Pairing == byNone {
		how = "not paired"
	}
	b = fmt.Appendf(b, "%-11s %s, simulated %s: %d and %d requests completed, %s\n", "measured", f.Measured, f.Simulated,
		f.Whole.Measured, f.Whole.Simulated, how)
	t := &table{}
	t.row("ms", "measured", "simulated", "error %", "95 % interval of simulated - measured")
	for i := range f.Whole.Times {
		time := &f.Whole.Times[i]
		for _, s := range []struct {
			name string
			e    *Deviation
		}{{"mean", &time.Mean}, {"p50", &time.P50}, {"p90", &time.P90}, {"p95", &time.P95}, {"p99", &time.P99}} {
			t.row(written[time.Metric]+" "+s.name, s.e.row(millisecond)...)
		}
	}
	if f.Whole.RPS != nil {
		t.row("requests/s", f.Whole.RPS.row(number)...)
	}
	b = t.append(append(b, '\n'))
	if each := f.each(); len(each.rows) > 1 {
		b = each.append(append(b, '\n'))
	}
	for _, parts := range []struct {
		name string
		list []Judged
	}{{"stage", f.Stages}, {"class", f.Classes}} {
		if len(parts.list) > 0 {
			b = byPart(parts.name, parts.list).append(append(b, '\n'))
		}
	}
	return b
}

// row is the cells behind the name.
func (e *Deviation) row(show func(float64) string) []string {
	interval := ""
	if e.Lo != nil {
		interval = signed(e.Lo, show) + " .. " + signed(e.Hi, show)
	}
	return []string{show(e.Measured), show(e.Simulated), e.percent(), interval}
}

func (e *Deviation) percent() string {
	if e.Percent == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f", *e.Percent)
}

// each is the table of single requests' errors.
func (f *Fidelity) each() *table {
	t := &table{}
	t.row("each request", "pairs", "bias, ms", "mean error %", "Pearson", "KS of all")
	for _, time := range f.Whole.Times {
		if time.Each == nil {
			continue
		}
		e := time.Each
		t.row(written[time.Metric], fmt.Sprint(e.Requests), fmt.Sprintf("%+.2f", e.BiasMS), plain(e.MAPE, millisecond), plain(e.Pearson, millisecond), plain(time.KS, millisecond))
	}
	return t
}

// byPart is the table of parts: measured -> simulated and the error in %.
func byPart(by string, list []Judged) *table {
	t := &table{more: len(list) - maxRows}
	t.row("by "+by+", ms and error %", "requests", "TTFT mean", "TTFT p99", "TPOT p50", "E2E mean", "E2E p99")
	for _, p := range list[:min(len(list), maxRows)] {
		cells := map[string]string{}
		for i := range p.Times {
			time := &p.Times[i]
			for name, e := range map[string]*Deviation{"mean": &time.Mean, "p50": &time.P50, "p99": &time.P99} {
				cells[time.Metric+" "+name] = fmt.Sprintf("%s -> %s (%s)", millisecond(e.Measured), millisecond(e.Simulated), e.percent())
			}
		}
		row := []string{fmt.Sprintf("%d, %d", p.Measured, p.Simulated)}
		for _, name := range []string{"ttft mean", "ttft p99", "tpot p50", "e2e mean", "e2e p99"} {
			if cells[name] == "" {
				cells[name] = "-"
			}
			row = append(row, cells[name])
		}
		t.row(stream.Printable(strings.TrimSpace(p.Name)), row...)
	}
	return t
}
