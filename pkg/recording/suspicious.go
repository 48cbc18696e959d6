package recording

import "fmt"

const (
	// maxDuplicateShare is the share of duplicate rows above which they are reported.
	maxDuplicateShare = 0.01
	// slowToken and slowRequest are the times per token and per response, in µs, above which times
	// are probably not in seconds.
	slowToken, slowRequest = 1e6, 3600e6
)

// warnDuplicates warns of rows with the same arrival, lengths and times.
func (r *Run) warnDuplicates() {
	type row struct {
		at, first, last int64
		input, output   int64
	}
	seen := make(map[row]bool, len(r.Outcomes))
	duplicates := 0
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		is := row{int64(o.ArrivalUS), int64(o.FirstTokenUS), int64(o.CompletedUS), o.InputTokens, o.OutputTokens}
		if o.State == completed && seen[is] {
			duplicates++
		}
		seen[is] = true
	}
	if float64(duplicates) > maxDuplicateShare*float64(len(r.Outcomes)) {
		r.warnf("%d of %d requests duplicate the arrival, lengths and times of another; each is counted and simulated",
			duplicates, len(r.Outcomes))
	}
}

// warnSlow warns of times that are too long to be in seconds, as the column names say. names are
// the names of columns in ms.
func (r *Run) warnSlow(names string) {
	var latencies, tokens []float64
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if o.State != completed {
			continue
		}
		latencies = append(latencies, float64(o.CompletedUS-o.ArrivalUS))
		if o.FirstTokenUS >= 0 && o.OutputTokens > 1 {
			tokens = append(tokens, float64(o.CompletedUS-o.FirstTokenUS)/float64(o.OutputTokens-1))
		}
	}
	found := ""
	if m := median(tokens); m > slowToken {
		found = fmt.Sprintf("%.4g s per token after the first", m/1e6)
	} else if m := median(latencies); m > slowRequest {
		found = fmt.Sprintf("%.4g s per response", m/1e6)
	}
	if found != "" {
		r.warnf("half of the requests take %s or more; if the times are in ms, name the columns %s", found, names)
	}
}
