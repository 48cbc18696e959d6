package summarize

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"blis/pkg/dist"
	"blis/pkg/fitness"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// bootstrapSamples is the number of bootstrap samples, noiseSeed their seed.
const (
	bootstrapSamples = 500
	noiseSeed        = 0
)

// rows are the requests of a run that is compared.
type rows struct {
	index map[string]int32
	all   []row
}

// row holds what is kept of a request: times in ms, in the order of latencyNames, NaN if
// missing.
type row struct {
	id                               string
	arrival                          stream.Micros
	times                            [len(latencyNames)]float64
	state                            string
	admitted, hasTargets, metTargets bool
	input, output                    int64
	// notIssued counts the calls that were not issued because this one ended its session.
	notIssued     int64
	class, tenant string
}

// addOutcome adds an outcome; met is nil if its class has no targets.
func (k *rows) addOutcome(o *stream.Outcome, met *bool) {
	ms := func(from, to stream.Micros) float64 {
		if from.IsZero() || to.IsZero() {
			return math.NaN()
		}
		return float64(to-from) / 1000
	}
	r := row{id: strings.Clone(o.ID), arrival: o.ArrivalUS, state: o.State, admitted: !o.AdmittedUS.IsZero(),
		hasTargets: met != nil, metTargets: met != nil && *met,
		input: o.InputTokens, output: o.OutputTokens, class: strings.Clone(o.SLOClass), tenant: strings.Clone(o.Tenant)}
	r.times = [...]float64{ms(o.ArrivalUS, o.FirstTokenUS), math.NaN(), ms(o.ArrivalUS, o.CompletedUS),
		ms(o.EnqueuedUS, o.ScheduledUS)}
	if o.State == stream.StateCompleted && o.OutputTokens > 1 {
		r.times[1] = stream.TPOT(int64(o.CompletedUS-o.FirstTokenUS), o.OutputTokens)
	}
	k.index[r.id] = int32(len(k.all))
	k.all = append(k.all, r)
}

// addNotIssued stores the number of calls that a broken session did not issue with the
// call that broke it.
func (k *rows) addNotIssued(o *stream.SessionOutcome) {
	if at, ok := k.index[o.Breaker()]; ok && o.Lost() > 0 {
		k.all[at].notIssued = o.Lost()
	}
}

// noise returns the confidence intervals of the differences between the score of x and
// those of its reference runs. Requests are resampled in blocks, in order of arrival, the
// same for all runs, and each bootstrap sample is scored. What is not counted by request
// (replicas, inter-token gaps, sessions) stays constant. It returns nil if a run that is
// needed has no outcomes.
func (r *analysis) noise(x *runDoc) (byRole map[string]stat.Interval) {
	compared := map[string]*runDoc{"m": x, "base": x.base, "parent": x.parent}
	needs := map[string]bool{}
	needs["base"], needs["parent"] = r.fitness.NeedsReferences()
	for _, role := range roles {
		y := compared[role]
		if y == nil || y.rows != nil && len(y.rows.all) > 0 && y.end.WorkloadDigest == x.end.WorkloadDigest {
			continue
		}
		// A score that reads metrics of a run that cannot be resampled has no interval.
		if role == "m" || needs[role] {
			return nil
		}
		delete(compared, role)
	}
	if compared["base"] == nil && compared["parent"] == nil {
		return nil
	}
	order := arrivalOrder(x, compared["base"], compared["parent"])
	length := 1
	for _, y := range []*runDoc{compared["base"], compared["parent"]} {
		if y != nil {
			length = max(length, blockLength(order, x, y))
		}
	}
	resampled := stat.NewResampling(len(order), length, bootstrapSamples, dist.NewStream(noiseSeed, "noise").IntN)
	samples := map[string][]map[string]float64{}
	for _, role := range roles {
		if y := compared[role]; y != nil {
			samples[role] = (&resampledRun{resampled, y.rows.aligned(order),
				y.raw.DurationS}).statistics(r.fitness.MetricPaths())
		}
	}
	scores := map[string][]float64{}
	for _, role := range roles {
		y := compared[role]
		if y == nil {
			continue
		}
		in := fitness.NewRun(y.tree(), y.header.SLOClasses, x.base.tree(), x.parent.tree())
		at := func(role string, d int) map[string]float64 {
			if samples[role] == nil {
				return nil
			}
			return samples[role][d]
		}
		for d := range bootstrapSamples {
			scores[role] = append(scores[role],
				r.fitness.Rescore(in.WithValues(at(role, d), at("base", d), at("parent", d))))
		}
	}
	byRole = map[string]stat.Interval{}
	for _, role := range roles[1:] {
		if compared[role] == nil {
			continue
		}
		differences := make([]float64, bootstrapSamples)
		for d := range bootstrapSamples {
			differences[d] = scores["m"][d] - scores[role][d]
		}
		if ci, ok := resampled.Interval(differences); ok {
			byRole[role] = ci
		}
	}
	return byRole
}

// roles are the trees of a fitness expression, the run itself first.
var roles = [...]string{"m", "base", "parent"}

// arrivalOrder returns the ids of all requests of the runs, in order of arrival.
func arrivalOrder(runs ...*runDoc) []string {
	at := map[string]stream.Micros{}
	var ids []string
	for _, y := range runs {
		if y == nil {
			continue
		}
		for i := range y.rows.all {
			q := &y.rows.all[i]
			if _, there := at[q.id]; !there {
				ids = append(ids, q.id)
				at[q.id] = q.arrival
			}
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(at[a], at[b]), strings.Compare(a, b)) })
	return ids
}

// blockLength returns the block length for the correlation of the differences of TTFT and
// E2E.
func blockLength(order []string, x, y *runDoc) int {
	length := 1
	for _, k := range []int{0, 2} {
		var series []float64
		for _, id := range order {
			i, ok := x.rows.index[id]
			j, ok2 := y.rows.index[id]
			if !ok || !ok2 {
				continue
			}
			if d := x.rows.all[i].times[k] - y.rows.all[j].times[k]; !math.IsNaN(d) {
				series = append(series, d)
			}
		}
		l, _ := stat.BlockLength(series)
		length = max(length, l)
	}
	return length
}

// aligned returns the requests in the given order, nil for those that the run does not
// have.
func (k *rows) aligned(order []string) []*row {
	all := make([]*row, len(order))
	for i, id := range order {
		if at, ok := k.index[id]; ok {
			all[i] = &k.all[at]
		}
	}
	return all
}
