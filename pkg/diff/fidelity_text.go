package diff

import (
	"cmp"
	"fmt"
	"strings"

	"blis/pkg/stream"
	"blis/pkg/texttab"
)

// timeLabels are the names of the times for people.
var timeLabels = map[string]string{"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E", "queue": "queue"}

// append adds the fidelity for people.
func (f *Fidelity) append(b []byte) []byte {
	pairing := "paired by " + f.Pairing
	if f.Pairing == byOrder {
		pairing += " of arrival"
	}
	if f.Pairing == byNone {
		pairing = "not paired"
	}
	b = fmt.Appendf(b, "%-11s %s, simulated %s: %d and %d requests completed, %s\n", "measured", f.Measured,
		f.Simulated, f.Overall.Measured, f.Overall.Simulated, pairing)
	t := &texttab.Table{}
	t.Row("ms", "measured", "simulated", "error %", "95 % interval of simulated - measured")
	for i := range f.Overall.Times {
		time := &f.Overall.Times[i]
		for _, s := range time.statistics() {
			t.Row(timeLabels[time.Metric]+" "+s.name, s.row(millisecond)...)
		}
	}
	if f.Overall.RPS != nil {
		t.Row("requests/s", f.Overall.RPS.row(number)...)
	}
	b = t.Append(append(b, '\n'))
	if each := f.perRequestTable(); len(each.Rows) > 1 {
		b = each.Append(append(b, '\n'))
	}
	for _, parts := range []struct {
		name string
		list []GroupFidelity
	}{{"stage", f.Stages}, {"class", f.Classes}} {
		if len(parts.list) > 0 {
			b = groupFidelityTable(parts.name, parts.list).Append(append(b, '\n'))
		}
	}
	return b
}

// row returns the cells after the name.
func (e *Deviation) row(show func(float64) string) []string {
	interval := ""
	if e.CI != nil {
		interval = signed(&e.CI.Lo, show) + " .. " + signed(&e.CI.Hi, show)
	}
	return []string{show(e.Measured), show(e.Simulated), numberOrDash(e.Percent, percent), interval}
}

// perRequestTable is the table of errors of single requests.
func (f *Fidelity) perRequestTable() *texttab.Table {
	t := &texttab.Table{}
	t.Row("per request", "pairs", "bias, ms", "MAPE, %", "Pearson", "KS of all")
	for _, time := range f.Overall.Times {
		if time.PerRequest == nil {
			continue
		}
		e := time.PerRequest
		t.Add(timeLabels[time.Metric], e.Requests, fmt.Sprintf("%+.2f", e.BiasMS),
			numberOrDash(e.MAPE, unsignedPercent), numberOrDash(e.Pearson, millisecond),
			numberOrDash(time.KS, millisecond))
	}
	return t
}

// groupFidelityTable is the table of groups: measured -> simulated (error in %).
func groupFidelityTable(by string, list []GroupFidelity) *texttab.Table {
	t := &texttab.Table{Omitted: len(list) - maxRows}
	t.Row("by "+by+", measured -> simulated ms (error %)", "requests", "TTFT mean", "TTFT p99", "TPOT p50", "E2E mean",
		"E2E p99")
	for _, p := range list[:min(len(list), maxRows)] {
		cells := map[string]string{}
		for i := range p.Times {
			for _, s := range p.Times[i].statistics() {
				cells[p.Times[i].Metric+" "+s.name] = fmt.Sprintf("%s -> %s (%s)", millisecond(s.Measured),
					millisecond(s.Simulated), numberOrDash(s.Percent, percent))
			}
		}
		row := []string{fmt.Sprintf("%d, %d", p.Measured, p.Simulated)}
		for _, name := range []string{"ttft mean", "ttft p99", "tpot p50", "e2e mean", "e2e p99"} {
			row = append(row, cmp.Or(cells[name], "-"))
		}
		t.Row(stream.Printable(strings.TrimSpace(p.Name)), row...)
	}
	return t
}
