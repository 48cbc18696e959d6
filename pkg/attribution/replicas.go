package attribution

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"blis/pkg/stream"
)

// ReplicaRow is what one replica, or one deployment, did with the requests that were sent to it.
type ReplicaRow struct {
	Name string
	// Sent are the requests, Share their share of all that were sent. Lost of the Judged lost something.
	Sent, Judged, Lost        int64
	Share                     float64
	InputTokens, CachedTokens int64
	// TPOTMS is the median of the completed requests, Slower by what factor an output token takes longer than at a
	// peer with similar requests; see conditions about slow replicas.
	TPOTMS, Slower float64
	// Prefills: it is a prefill replica, or a pool of these, which has no TPOT.
	Prefills bool

	deployment string
	index      stream.Index
}

// LossRate is the share of the judged requests that lost something.
func (r *ReplicaRow) LossRate() float64 { return float64(r.Lost) / float64(max(1, r.Judged)) }

// HitRate is the share of the prompt tokens that were found in the cache.
func (r *ReplicaRow) HitRate() float64 {
	return float64(r.CachedTokens) / float64(max(1, r.InputTokens))
}

// Has reports whether the row is about this replica.
func (r *ReplicaRow) Has(deployment string, index stream.Index) bool {
	return r.deployment == deployment && (r.index.IsZero() || r.index == index)
}

// replicaRows are rows with the place of each.
type replicaRows struct {
	all   []ReplicaRow
	place map[replicaID]int
}

// row returns the row of a replica, or of a deployment, a new one if needed.
func (x *replicaRows) row(id replicaID, name string) *ReplicaRow {
	at, known := x.place[id]
	if !known {
		at = len(x.all)
		x.place[id] = at
		x.all = append(x.all, ReplicaRow{Name: name, deployment: id.deployment, index: id.index})
	}
	return &x.all[at]
}

// prefill returns the row of a prefill replica, or of the pool, of a deployment.
func (x *replicaRows) prefill(deployment string, index stream.Index) *ReplicaRow {
	id := replicaID{stream.PrefillPool(deployment), index}
	name := id.deployment
	if !index.IsZero() {
		name = fmt.Sprintf("%s/%d", name, index)
	}
	r := x.row(id, name)
	r.Prefills = true
	return r
}

// countReplicas returns a row for each replica and for each deployment, and for prefill replicas and their pools, those
// with the most losses first. A request with a prefill replica counts there, too.
func (a *Analyzer) countReplicas() (replicas, deployments []ReplicaRow) {
	r, d := replicaRows{place: map[replicaID]int{}}, replicaRows{place: map[replicaID]int{}}
	deployed := make([]int, len(a.topology.replicas)) // the row of its deployment; its own is that of its number
	tpots := make([][]float64, len(a.topology.replicas))
	for n, count := range a.countByReplica() {
		tpots[n] = make([]float64, 0, count)
	}
	for n, id := range a.topology.replicas {
		slower := a.stats.speeds.slower[n]
		r.row(id, a.topology.names[n]).Slower = slower
		all := d.row(replicaID{id.deployment, stream.NoIndex}, id.deployment)
		all.Slower = max(all.Slower, slower)
		deployed[n] = d.place[replicaID{id.deployment, stream.NoIndex}]
	}
	for i := range a.topology.Deployments {
		if x := &a.topology.Deployments[i]; x.Prefill != nil {
			d.prefill(x.ID, stream.NoIndex)
			for k := range x.Prefill.Replicas {
				r.prefill(x.ID, stream.Index(k))
			}
		}
	}
	sent := int64(0)
	for _, q := range a.requests.all() {
		if q.replica == missing || q.verdict.excluded {
			continue
		}
		sent++
		r.all[q.replica].add(q)
		d.all[deployed[q.replica]].add(q)
		if tpot := a.tpotMS(q); tpot > 0 {
			tpots[q.replica] = append(tpots[q.replica], tpot)
		}
		if p := q.prefill; p != nil {
			id := a.topology.replicas[q.replica]
			r.prefill(id.deployment, p.replica).addPrompt(q)
			d.prefill(id.deployment, stream.NoIndex).addPrompt(q)
		}
	}
	for n, list := range tpots {
		r.all[n].TPOTMS = medianOrZero(list)
	}
	for i := range d.all {
		d.all[i].TPOTMS = medianOrZero(joined(tpots, func(n int) bool { return deployed[n] == i }))
	}
	for _, rows := range [][]ReplicaRow{r.all, d.all} {
		for i := range rows {
			x := &rows[i]
			x.Share = float64(x.Sent) / float64(max(1, sent))
		}
		slices.SortStableFunc(rows, func(x, y ReplicaRow) int { return cmp.Compare(y.Lost, x.Lost) })
	}
	return r.all, d.all
}

// add counts a request at the replica that decodes.
func (x *ReplicaRow) add(r *request) {
	x.count(r)
	if r.scheduled() != never {
		cached := r.tokens.cached
		if p := r.prefill; p != nil {
			cached = p.cached
		}
		x.InputTokens += int64(r.tokens.input)
		x.CachedTokens += int64(cached)
	}
}

// joined are the numbers in those of the lists that are selected.
func joined(lists [][]float64, selects func(n int) bool) []float64 {
	var selected [][]float64
	for n, list := range lists {
		if selects(n) {
			selected = append(selected, list)
		}
	}
	return slices.Concat(selected...)
}

// addPrompt counts a request at its prefill replica.
func (x *ReplicaRow) addPrompt(r *request) {
	x.count(r)
	if r.prefill.scheduled != never {
		x.InputTokens += int64(r.tokens.input)
		x.CachedTokens += int64(r.tokens.cached)
	}
}

func (x *ReplicaRow) count(r *request) {
	x.Sent++
	if r.verdict.judged {
		x.Judged++
	}
	if r.lost() {
		x.Lost++
	}
}

// LossWindow is the shortest time in which 90 % of the losing requests arrived. It is the zero value where that is
// more than half of the time in which requests arrived.
type LossWindow struct{ FromUS, UntilUS, RunUS stream.Micros }

func (a *Analyzer) lossWindow() (w LossWindow) {
	var lost []stream.Micros
	first, last := stream.Micros(math.MaxInt64), stream.Micros(0)
	for _, r := range a.requests.all() {
		if r.verdict.judged {
			first, last = min(first, r.arrival()), max(last, r.arrival())
			if r.lost() {
				lost = append(lost, r.arrival())
			}
		}
	}
	if len(lost) < MinLost {
		return LossWindow{}
	}
	slices.Sort(lost)
	n := (9*len(lost) + 9) / 10
	from, until := lost[0], lost[len(lost)-1]
	for i := 0; i+n <= len(lost); i++ {
		if lost[i+n-1]-lost[i] < until-from {
			from, until = lost[i], lost[i+n-1]
		}
	}
	if 2*(until-from) > last-first {
		return LossWindow{}
	}
	return LossWindow{from, until, last - first}
}
