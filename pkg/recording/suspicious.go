package recording

import (
	"fmt"
	"slices"

	"blis/pkg/registry"
)

// Warnings of several formats: a file without arrivals, and a load generator that waited for
// responses; the argument says how.
const (
	noArrivalsWarning = "arrival times are missing: the concurrency is unknown and the run cannot be replayed"
	closedLoopWarning = "%s: requests waited for responses, so arrivals depended on the server's speed; a replay " +
		"keeps the recorded arrivals"
)

const (
	// maxDuplicateShare is the share of duplicate rows above which they are reported.
	maxDuplicateShare = 0.01
	// slowToken and slowRequest are the times per token and per response, in µs, above which times
	// are probably not in seconds.
	slowToken, slowRequest = 1e6, 3600e6
)

// warnDuplicates warns of rows with the same arrival, lengths and times.
func (r *Run) warnDuplicates() {
	seen := make(map[[5]int64]bool, len(r.Outcomes))
	duplicates := 0
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		is := [5]int64{int64(o.ArrivalUS), int64(o.FirstTokenUS), int64(o.CompletedUS), o.InputTokens, o.OutputTokens}
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

// warnUnknown warns of unknown columns, which may be misspelled.
func (r *Run) warnUnknown(columns, known []string) {
	unused := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return slices.Contains(columns, name) })
	for _, name := range columns {
		if slices.Contains(known, name) {
			continue
		}
		hint := ""
		if closest := registry.Closest(name, unused); closest != "" {
			hint = fmt.Sprintf("; did you mean %s?", closest)
		}
		r.warnf("the column %s is unknown and ignored%s", name, hint)
	}
}

// warnChunks warns of outputs with fewer chunks than tokens.
func (r *Run) warnChunks(requests []request) {
	chunked := 0
	for i := range requests {
		if c := &requests[i]; c.State == completed && c.chunks > 0 && c.chunks < c.OutputTokens {
			chunked++
		}
	}
	if chunked > 0 {
		r.warnf("%d outputs came in chunks of several tokens: their inter-token latencies are unknown, and TTFT may "+
			"include several tokens", chunked)
	}
}

// warnStreaming is warnChunks, and warns of completed requests without a first token time.
func (r *Run) warnStreaming(requests []request) {
	r.warnChunks(requests)
	unstreamed := 0
	for i := range requests {
		if requests[i].State == completed && isMissing(requests[i].first) {
			unstreamed++
		}
	}
	if unstreamed > 0 {
		r.warnf("%d requests completed without a first token time; were they streamed?", unstreamed)
	}
}
