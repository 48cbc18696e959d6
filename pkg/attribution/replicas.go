package attribution

import (
	"cmp"
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

	deployment string
	index      stream.Index
	tpots      []float64
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

// countReplicas returns a row for each replica and for each deployment, those with the most losses first.
func (a *Analyzer) countReplicas() (replicas, deployments []ReplicaRow) {
	place := map[string]int{}
	for n, id := range a.topology.replicas {
		slower := a.stats.speeds.slower[n]
		replicas = append(replicas, ReplicaRow{Name: a.topology.names[n], Slower: slower, deployment: id.deployment,
			index: id.index})
		if _, known := place[id.deployment]; !known {
			place[id.deployment] = len(deployments)
			deployments = append(deployments, ReplicaRow{Name: id.deployment, deployment: id.deployment,
				index: stream.NoIndex})
		}
		d := &deployments[place[id.deployment]]
		d.Slower = max(d.Slower, slower)
	}
	sent := int64(0)
	for _, r := range a.requests {
		if r.replica == missing || r.verdict.excluded {
			continue
		}
		sent++
		replicas[r.replica].add(a, r)
		deployments[place[a.topology.replicas[r.replica].deployment]].add(a, r)
	}
	for _, rows := range [][]ReplicaRow{replicas, deployments} {
		for i := range rows {
			x := &rows[i]
			x.Share = float64(x.Sent) / float64(max(1, sent))
			if len(x.tpots) > 0 {
				x.TPOTMS = median(x.tpots)
			}
		}
		slices.SortStableFunc(rows, func(x, y ReplicaRow) int { return cmp.Compare(y.Lost, x.Lost) })
	}
	return replicas, deployments
}

func (x *ReplicaRow) add(a *Analyzer, r *request) {
	x.Sent++
	if r.verdict.judged {
		x.Judged++
	}
	if r.lost() {
		x.Lost++
	}
	if r.times.scheduled != never {
		x.InputTokens += int64(r.tokens.input)
		x.CachedTokens += int64(r.tokens.cached)
	}
	if tpot := a.tpotMS(r); tpot > 0 {
		x.tpots = append(x.tpots, tpot)
	}
}

// LossWindow is the shortest time in which 90 % of the losing requests arrived. It is the zero value where that is
// more than half of the time in which requests arrived.
type LossWindow struct{ FromUS, UntilUS, RunUS stream.Micros }

func (a *Analyzer) lossWindow() (w LossWindow) {
	var lost []stream.Micros
	first, last := stream.Micros(math.MaxInt64), stream.Micros(0)
	for _, r := range a.requests {
		if r.verdict.judged {
			first, last = min(first, r.times.arrival), max(last, r.times.arrival)
			if r.lost() {
				lost = append(lost, r.times.arrival)
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
