package summarize

import (
	"slices"
	"strconv"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/resample"
)

// resampledRuns are the statistics of a run and its references in the bootstrap samples.
type resampledRuns struct {
	*resample.Bootstrap
	// statistics are by role and path, one value for each bootstrap sample.
	statistics map[string]map[string][]float64
}

// resample draws the bootstrap samples of runs, by role, and computes the statistics that
// the fitness reads. A run without a role is nil. The run itself is compared with the
// references, so it is the last.
func (r *analysis) resample(runs map[string]*runDoc) *resampledRuns {
	var used []string
	for _, role := range []string{"base", "parent", "m"} {
		if runs[role] != nil {
			used = append(used, role)
		}
	}
	order := arrivalOrder(used, runs)
	var requests [][]*resample.Request
	for _, role := range used {
		requests = append(requests, runs[role].rows.inOrder(order))
	}
	all := &resampledRuns{resample.New(resample.Source(noiseSeed), requests...), map[string]map[string][]float64{}}
	for i, role := range used {
		run := all.Run(i, runs[role].raw)
		all.statistics[role] = runs[role].statistics(run, order, r.fitness.MetricPaths())
	}
	return all
}

// values returns the statistics of a role in the i-th bootstrap sample, nil if there is
// no such run.
func (r *resampledRuns) values(role string, i int) map[string]float64 {
	if r.statistics[role] == nil {
		return nil
	}
	values := make(map[string]float64, len(r.statistics[role]))
	for path, of := range r.statistics[role] { // the order does not matter: values is a map
		values[path] = of[i]
	}
	return values
}

// arrivalOrder returns the ids of all requests of the runs, in order of arrival.
func arrivalOrder(roles []string, runs map[string]*runDoc) []string {
	arrival := map[string]int64{}
	var ids []string
	for _, role := range roles {
		for i := range runs[role].rows.all {
			q := &runs[role].rows.all[i]
			if _, known := arrival[q.id]; !known {
				ids = append(ids, q.id)
				arrival[q.id] = q.Arrival
			}
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return resample.CompareArrivals(arrival[a], arrival[b], a, b) })
	return ids
}

// inOrder returns the requests in the given order, nil for those that the run does not
// have.
func (k *rows) inOrder(order []string) []*resample.Request {
	requests := make([]*resample.Request, len(order))
	for i, id := range order {
		if at, ok := k.index[id]; ok {
			requests[i] = &k.all[at].Request
		}
	}
	return requests
}

// statistics returns the statistics of the groups that the paths refer to, those that the
// metrics of the run have.
func (s *summary) statistics(run *resample.Run, order, paths []string) map[string][]float64 {
	known := map[string]bool{}
	for _, v := range metrics.Values(s.raw) {
		known[v.Path] = true
	}
	all, done := map[string][]float64{}, map[string]bool{}
	for _, path := range paths {
		prefix, selects := groupOf(path)
		if selects == nil || done[prefix] {
			continue
		}
		done[prefix] = true
		rows := run.Rows(func(i int) bool { return selects(&s.rows.all[s.rows.index[order[i]]]) })
		for name, of := range run.Statistics(rows, !strings.HasPrefix(prefix, "model[")) { // into a map
			if known[prefix+name] {
				all[prefix+name] = of
			}
		}
	}
	return all
}

// groupOf returns the prefix of the paths of the group that the path refers to, and the
// condition for its requests; nil if the path is not counted by request.
func groupOf(path string) (prefix string, selects func(*row) bool) {
	keys := metrics.PathKeys(path)
	if len(keys) == 0 {
		return "", func(*row) bool { return true }
	}
	branch, _, _ := strings.Cut(path, "[")
	name, err := strconv.Unquote(strings.Trim(keys[0], "[]"))
	of := map[string]func(*row) string{"cls": func(r *row) string { return r.class },
		"tenants": func(r *row) string { return r.tenant }, "models": func(r *row) string { return r.model }}[branch]
	if of == nil || err != nil {
		return "", nil
	}
	return metrics.SubPath(branch, name) + ".", func(r *row) bool { return of(r) == name }
}
