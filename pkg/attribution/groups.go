package attribution

import (
	"cmp"
	"slices"
)

// GroupRow is what the requests of a class or a tenant lost, and why.
type GroupRow struct {
	// Name is that of the class or tenant.
	Name           string
	Requests, Lost int64
	// InputTokens and OutputTokens are means.
	InputTokens, OutputTokens float64
	// Patterns are how many of the lost requests each pattern explains, Part where most of them lost.
	Patterns []int64
	Part     Part

	parts [PartCount]int64
}

// countGroups counts the judged requests by a label, those with the most losses first. Requests without it have none.
func (a *Analyzer) countGroups(f *Findings, label func(*labels) int32) (rows []GroupRow) {
	byName := make([]*GroupRow, len(a.names.list))
	for _, r := range a.requests.all() {
		n := label(r.labels)
		if !r.verdict.judged || a.names.list[n] == "" {
			continue
		}
		if byName[n] == nil {
			byName[n] = &GroupRow{Name: a.names.list[n], Patterns: make([]int64, len(f.Patterns))}
		}
		byName[n].add(r)
	}
	for _, g := range byName {
		if g == nil {
			continue
		}
		g.InputTokens /= float64(g.Requests)
		g.OutputTokens /= float64(g.Requests)
		g.Part = mostFrequent(&g.parts)
		rows = append(rows, *g)
	}
	slices.SortFunc(rows, func(x, y GroupRow) int {
		return cmp.Or(cmp.Compare(y.Lost, x.Lost), cmp.Compare(x.Name, y.Name))
	})
	return rows
}

func (g *GroupRow) add(r *request) {
	g.Requests++
	g.InputTokens += inputTokens(r)
	g.OutputTokens += outputTokens(r)
	if !r.lost() {
		return
	}
	g.Lost++
	g.parts[r.verdict.dominant]++
	if p := r.verdict.pattern; p >= 0 {
		g.Patterns[p]++
	}
}

// mostFrequent is the part with the highest count, of several the first.
func mostFrequent(counts *[PartCount]int64) (most Part) {
	for p, n := range counts {
		if n > counts[most] {
			most = Part(p)
		}
	}
	return most
}
