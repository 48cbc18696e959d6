package summarize

import (
	"strings"

	"blis/pkg/fitness"
	"blis/pkg/resample"
	"blis/pkg/stat"
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
	r := row{resample.NewRequest(o, met), strings.Clone(o.ID), strings.Clone(o.SLOClass), strings.Clone(o.Tenant),
		strings.Clone(o.Model)}
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
	samples := r.resample(compared)
	scores := map[string][]float64{}
	for _, role := range roles {
		y := compared[role]
		if y == nil {
			continue
		}
		in := fitness.NewRun(y.tree(), y.header.SLOClasses, x.base.tree(), x.parent.tree())
		for i := range samples.Samples() {
			scores[role] = append(scores[role], r.fitness.Rescore(
				in.WithValues(samples.values(role, i), samples.values("base", i), samples.values("parent", i))))
		}
	}
	byRole = map[string]stat.Interval{}
	for _, role := range roles[1:] {
		if compared[role] == nil {
			continue
		}
		if ci, ok := samples.Difference(scores[role], scores["m"]); ok {
			byRole[role] = ci
		}
	}
	return byRole
}

// roles are the trees of a fitness expression, the run itself first.
var roles = [...]string{"m", "base", "parent"}
