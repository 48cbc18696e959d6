package recording

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/registry"
)

// nameRuns names runs by words that tell them apart: of each place in the lists
// of words those that vary, as few as do; a last one counts where they do not.
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

// Warnings that several formats share: of a file without arrivals, and of a load
// generator that waited for answers, which says how.
const (
	noArrivals = "the file does not say when requests arrived: what concurrency there was is not known, and nothing can be replayed"
	closedLoop = "%s: requests were held back until others were answered, so that arrivals followed from the server's speed; a replay keeps them as they were"
)

// warnUnknown warns of columns that are none of those known, which may be misspelt.
func (r *Run) warnUnknown(columns, known []string) {
	missing := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return slices.Contains(columns, name) })
	for _, name := range columns {
		if slices.Contains(known, name) {
			continue
		}
		hint := ""
		if near := registry.Closest(name, missing); near != "" {
			hint = fmt.Sprintf("; did you mean %s?", near)
		}
		r.warnf("the column %s means nothing here%s", name, hint)
	}
}

// warnChunks warns of answers that came in fewer pieces than tokens.
func (r *Run) warnChunks(n int) {
	if n > 0 {
		r.warnf("%d answers came in pieces of several tokens: the gaps between their tokens are not known, and their first token may have come with others", n)
	}
}

// warnUnstreamed warns of answers without a first token.
func (r *Run) warnUnstreamed(n int) {
	if n > 0 {
		r.warnf("%d requests completed without a time of the first token: were they streamed?", n)
	}
}

// unstreamed counts the calls that completed without a time of the first token.
func unstreamed(calls []call) int {
	n := 0
	for i := range calls {
		if calls[i].State == completed && isAbsent(calls[i].first) {
			n++
		}
	}
	return n
}
