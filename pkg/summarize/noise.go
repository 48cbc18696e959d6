package summarize

import (
	"slices"
	"strconv"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/resample"
	"blis/pkg/stream"
)

// rows are the requests of a run that is compared.
type rows struct {
	index map[string]int32
	all   []row
}

// row is what is kept of a request.
type row struct {
	resample.Request
	id, class, tenant, model string
}

// addOutcome adds an outcome; met is nil if its class has no targets.
func (k *rows) addOutcome(o *stream.Outcome, met *bool) {
	r := row{resample.NewRequest(o, met), strings.Clone(o.Original()), strings.Clone(o.SLOClass),
		strings.Clone(o.Tenant), strings.Clone(o.Model)}
	k.index[r.id] = int32(len(k.all))
	k.all = append(k.all, r)
}

// addNotIssued stores the number of calls that a broken session did not issue with the
// call that broke it.
func (k *rows) addNotIssued(o *stream.SessionOutcome) {
	if at, ok := k.index[o.FailedRequest()]; ok && o.NotIssued() > 0 {
		k.all[at].NotIssued = int32(o.NotIssued())
	}
}

// noiseSeed is the seed of the bootstrap samples.
const noiseSeed = 0

// findNoise finds the confidence intervals of the differences between the score of x and
// those of its reference runs. Requests are resampled in blocks, in order of arrival, the
// same for all runs, and each bootstrap sample is scored. What is not counted by request
// (replicas, inter-token gaps, sessions) stays constant. There is no interval if a run
// that is needed has no outcomes.
func (r *analysis) findNoise(x *runDoc) {
	runs, needed := comparedRuns{x, x.references[0].runDoc, x.references[1].runDoc}, [len(comparedRuns{})]bool{true}
	needed[1], needed[2] = r.fitness.NeedsReferences()
	for i, y := range runs {
		if y == nil || y.rows != nil && len(y.rows.all) > 0 && y.sameWorkload(x) {
			continue
		}
		// A score that reads metrics of a run that cannot be resampled has no interval.
		if needed[i] {
			return
		}
		runs[i] = nil
	}
	if runs[1] == nil && runs[2] == nil {
		return
	}
	samples := r.resample(runs)
	var scores [len(runs)][]float64
	for i, y := range runs {
		if y == nil {
			continue
		}
		in := x.inPlace(y)
		for k := range samples.Samples() {
			scores[i] = append(scores[i], r.fitness.Rescore(
				in.InSample(k, samples.statistics[i], samples.statistics[1], samples.statistics[2])))
		}
	}
	for i := range x.references {
		if runs[i+1] == nil {
			continue
		}
		if ci, ok := samples.Difference(scores[i+1], scores[0]); ok {
			x.references[i].noise = &ci
		}
	}
}

// comparedRuns are a run, its baseline and its parent, nil without one.
type comparedRuns [3]*runDoc

// resampleOrder are the indices of comparedRuns. The run itself is compared with the references, so it is
// the last.
var resampleOrder = [...]int{1, 2, 0}

// resampledRuns are the statistics of a run and its references in the bootstrap samples.
type resampledRuns struct {
	*resample.Bootstrap
	// statistics of each run are by path, one value for each bootstrap sample.
	statistics [len(comparedRuns{})]map[string][]float64
}

// resample draws the bootstrap samples of the runs and computes the statistics that the
// fitness reads.
func (r *analysis) resample(runs comparedRuns) *resampledRuns {
	order := arrivalOrder(runs)
	var used []int
	var requests [][]*resample.Request
	for _, i := range resampleOrder {
		if runs[i] != nil {
			used, requests = append(used, i), append(requests, runs[i].rows.inOrder(order))
		}
	}
	all := &resampledRuns{Bootstrap: resample.New(resample.Source(noiseSeed), requests...)}
	for k, i := range used {
		all.statistics[i] = runs[i].statistics(all.Run(k, runs[i].raw), order, r.fitness.MetricPaths())
	}
	return all
}

// arrivalOrder returns the ids of all requests of the runs, in order of arrival.
func arrivalOrder(runs comparedRuns) []string {
	arrival := map[string]int64{}
	var ids []string
	for _, i := range resampleOrder {
		if runs[i] == nil {
			continue
		}
		for k := range runs[i].rows.all {
			q := &runs[i].rows.all[k]
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
	known := metrics.ByPath(s.raw)
	targets := map[string]stream.Targets{}
	classes := s.header.SLOClasses
	if s.fitness != nil {
		classes = s.fitness.Classes(classes)
	}
	for _, c := range classes {
		targets[c.Name] = c.Targets
	}
	of := func(i int32) *row { return &s.rows.all[s.rows.index[order[i]]] }
	all, done := map[string][]float64{}, map[string]bool{}
	for _, path := range paths {
		prefix, selects := groupOf(path)
		if selects == nil || done[prefix] {
			continue
		}
		done[prefix] = true
		rows := run.Rows(func(i int) bool { return selects(of(int32(i))) })
		notIssued := !strings.HasPrefix(prefix, "models[")
		for name, values := range run.Statistics(resample.Set{Rows: rows, NotIssued: notIssued})[0] { // into a map
			if _, ok := known[prefix+name]; ok {
				all[prefix+name] = values
			}
		}
		for _, l := range resample.Latencies {
			_, differs := known[prefix+"targeted."+l.Name+".count"]
			read := func(p string) bool { return strings.HasPrefix(p, prefix+l.Name) }
			if !differs || !slices.ContainsFunc(paths, read) {
				continue
			}
			promised := func(i int32) bool { return targets[of(i).class].Of(l.Name) > 0 }
			for name, values := range run.Targeted(l.Name, rows, notIssued, promised) { // into a map
				all[prefix+name] = values
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
