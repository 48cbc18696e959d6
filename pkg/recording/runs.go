package recording

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/registry"
)

// nameRuns names runs by the words that distinguish them. For each run there is a list of words; a
// word is used if it varies between runs, and no more words than needed. Runs that are still equal
// are numbered.
func nameRuns(runs []*Run, words [][]string) {
	if len(runs) < 2 {
		return
	}
	for k := range words[0] {
		if !slices.ContainsFunc(words, func(w []string) bool { return w[k] != words[0][k] }) {
			continue
		}
		known := map[string]bool{}
		for i, run := range runs {
			run.Name = strings.TrimSpace(run.Name + " " + strings.ReplaceAll(words[i][k], " ", "_"))
			known[run.Name] = true
		}
		if len(known) == len(runs) && k > 0 {
			return
		}
	}
	known := map[string]int{}
	for _, run := range runs {
		known[run.Name]++
	}
	if len(known) < len(runs) {
		for i, run := range runs {
			run.Name = strings.TrimSpace(fmt.Sprintf("%s run=%d", run.Name, i+1))
		}
	}
}

// Warnings of several formats: a file without arrivals, and a load generator that waited for
// responses; the argument says how.
const (
	noArrivalsWarning = "arrival times are missing: the concurrency is unknown and the run cannot be replayed"
	closedLoopWarning = "%s: requests waited for responses, so arrivals depended on the server's speed; a replay " +
		"keeps the recorded arrivals"
)

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
func (r *Run) warnChunks(n int) {
	if n > 0 {
		r.warnf("%d outputs came in chunks of several tokens: their inter-token latencies are unknown, and TTFT may "+
			"include several tokens", n)
	}
}

// warnUnstreamed warns of responses without a first token time.
func (r *Run) warnUnstreamed(n int) {
	if n > 0 {
		r.warnf("%d requests completed without a first token time; were they streamed?", n)
	}
}

// countUnstreamed counts completed requests without a first token time.
func countUnstreamed(requests []request) int {
	n := 0
	for i := range requests {
		if requests[i].State == completed && isMissing(requests[i].first) {
			n++
		}
	}
	return n
}
