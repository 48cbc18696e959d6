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

// draws is how often blocks of requests are drawn, noiseSeed the seed of these draws.
const (
	draws     = 500
	noiseSeed = 0
)

// Interval is where 95 % of the draws of a difference lie: of the score of a run less
// that of the one that it is compared with. It is noise as long as 0 is within.
type Interval struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

// rows are the requests of a run that is compared, by their ids.
type rows struct {
	of  map[string]int32
	all []row
}

// row is what is kept of a request: times in ms, in the order of timed, or not a
// number.
type row struct {
	id                    string
	arrival               stream.Micros
	times                 [len(timed)]float64
	state                 string
	admitted, judged, met bool
	input, output         int64
	// lost calls were never made, because their session ended with this one.
	lost          int64
	class, tenant string
}

// keep notes an outcome; met is nil where nothing was promised.
func (k *rows) keep(o *stream.Outcome, met *bool) {
	ms := func(from, to stream.Micros) float64 {
		if from.IsZero() || to.IsZero() {
			return math.NaN()
		}
		return float64(to-from) / 1000
	}
	r := row{id: strings.Clone(o.ID), arrival: o.ArrivalUS, state: o.State, admitted: !o.AdmittedUS.IsZero(), judged: met != nil, met: met != nil && *met,
		input: o.InputTokens, output: o.OutputTokens, class: strings.Clone(o.SLOClass), tenant: strings.Clone(o.Tenant)}
	r.times = [...]float64{ms(o.ArrivalUS, o.FirstTokenUS), math.NaN(), ms(o.ArrivalUS, o.CompletedUS), ms(o.EnqueuedUS, o.ScheduledUS)}
	if o.State == stream.StateCompleted && o.OutputTokens > 1 {
		r.times[1] = stream.TPOT(int64(o.CompletedUS-o.FirstTokenUS), o.OutputTokens)
	}
	k.of[r.id] = int32(len(k.all))
	k.all = append(k.all, r)
}

// lose notes the calls that a broken session lost, with the call that broke it.
func (k *rows) lose(o *stream.SessionOutcome) {
	if at, ok := k.of[o.Breaker()]; ok && o.Lost() > 0 {
		k.all[at].lost = o.Lost()
	}
}

// noise says within which interval the score of x less that of each run that it is
// compared with lies: requests are drawn in blocks, in order of arrival, the same for
// all runs, and the score is computed of each draw. What is not counted by request
// (what replicas know, gaps between tokens, sessions) stays what it is. Without the
// outcomes of all runs there are none.
func (r *analysis) noise(x *subject) (byRole map[string]Interval) {
	compared := map[string]*subject{"m": x, "base": x.base, "parent": x.parent}
	needs := map[string]bool{}
	needs["base"], needs["parent"] = r.fitness.Needs()
	for _, role := range roles {
		y := compared[role]
		if y == nil || y.rows != nil && len(y.rows.all) > 0 && y.end.WorkloadDigest == x.end.WorkloadDigest {
			continue
		}
		// Scores that read the numbers of what cannot be drawn are not known.
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
	for _, y := range []*subject{compared["base"], compared["parent"]} {
		if y != nil {
			length = max(length, blockLength(order, x, y))
		}
	}
	resampled := stat.NewResampling(len(order), length, draws, dist.NewStream(noiseSeed, "noise").IntN)
	drawn := map[string][]map[string]float64{}
	for _, role := range roles {
		if y := compared[role]; y != nil {
			drawn[role] = (&drawing{resampled, y.rows.aligned(order), y.raw.DurationS}).all(r.fitness.Reads())
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
			if drawn[role] == nil {
				return nil
			}
			return drawn[role][d]
		}
		for d := range draws {
			scores[role] = append(scores[role], r.fitness.Again(in.Drawn(at(role, d), at("base", d), at("parent", d))))
		}
	}
	byRole = map[string]Interval{}
	for _, role := range roles[1:] {
		if compared[role] == nil {
			continue
		}
		differences := make([]float64, draws)
		for d := range draws {
			differences[d] = scores["m"][d] - scores[role][d]
		}
		if lo, hi, ok := resampled.Interval(differences); ok {
			byRole[role] = Interval{lo, hi}
		}
	}
	return byRole
}

// roles are the trees of a fitness, the run itself first.
var roles = [...]string{"m", "base", "parent"}

// arrivalOrder are the ids of all requests of the runs, in order of arrival.
func arrivalOrder(runs ...*subject) []string {
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

// blockLength is how long blocks must be for what the differences of TTFT and of E2E of
// neighbours have in common.
func blockLength(order []string, x, y *subject) int {
	length := 1
	for _, k := range []int{0, 2} {
		var series []float64
		for _, id := range order {
			i, ok := x.rows.of[id]
			j, ok2 := y.rows.of[id]
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

// aligned are the requests in that order, nil where the run does not have one.
func (k *rows) aligned(order []string) []*row {
	all := make([]*row, len(order))
	for i, id := range order {
		if at, ok := k.of[id]; ok {
			all[i] = &k.all[at]
		}
	}
	return all
}
