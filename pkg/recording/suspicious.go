package recording

import "fmt"

const (
	// mostTwice is the share of rows that are another row again from which on a table is
	// said to have duplicates.
	mostTwice = 0.01
	// slowToken and slowRequest are the times of a token and of a whole answer, in µs,
	// above which seconds are asked to be something else.
	slowToken, slowRequest = 1e6, 3600e6
)

// warnTwice warns of rows that are others again: of the same arrival, lengths and times.
func (r *Run) warnTwice() {
	type row struct {
		at, first, last int64
		input, output   int64
	}
	seen := make(map[row]bool, len(r.Outcomes))
	twice := 0
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		is := row{int64(o.ArrivalUS), int64(o.FirstTokenUS), int64(o.CompletedUS), o.InputTokens, o.OutputTokens}
		if o.State == completed && seen[is] {
			twice++
		}
		seen[is] = true
	}
	if float64(twice) > mostTwice*float64(len(r.Outcomes)) {
		r.warnf("%d of %d requests have the arrival, lengths and times of another: are they there twice? each counts, and loads a simulation", twice, len(r.Outcomes))
	}
}

// warnSlow warns of times so long that they are likely not in seconds, as a table's
// columns say. want are the names of the columns for ms.
func (r *Run) warnSlow(want string) {
	var answers, tokens []float64
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if o.State != completed {
			continue
		}
		answers = append(answers, float64(o.CompletedUS-o.ArrivalUS))
		if o.FirstTokenUS >= 0 && o.OutputTokens > 1 {
			tokens = append(tokens, float64(o.CompletedUS-o.FirstTokenUS)/float64(o.OutputTokens-1))
		}
	}
	long := ""
	if m := median(tokens); m > slowToken {
		long = fmt.Sprintf("%.4g s for each token after the first", m/1e6)
	} else if m := median(answers); m > slowRequest {
		long = fmt.Sprintf("%.4g s for an answer", m/1e6)
	}
	if long != "" {
		r.warnf("half of the requests take %s and more: if these are ms, the columns' names must be %s", long, want)
	}
}
