package attribution

import (
	"math"

	"blis/pkg/stat"
)

// MeasureAll makes Find measure all at once, also what is asked for only later. It is called before Find.
func (a *Analyzer) MeasureAll() { a.wantsAll = true }

// deriveLost gives each request that lost something a row of its own, and requests that lost nothing share theirs. It
// reports false, and does nothing, where enough is lost to look for patterns, or where regret is lost.
func (a *Analyzer) deriveLost() bool {
	loses := a.loses()
	if loses == nil {
		return false
	}
	var small Loss
	for _, r := range a.requests {
		if r.excluded {
			continue
		}
		small.Judged++
		if loses(r) {
			small.Lost++
		}
	}
	if !small.TooSmall() {
		return false
	}
	var rows derivedRows
	shared := map[verdict]*derived{}
	for _, r := range a.requests {
		v := verdict{excluded: r.excluded, judged: r.judged, met: r.met, pattern: -1}
		switch {
		case loses(r):
			r.derived = rows.next(v)
			continue
		case shared[v] == nil:
			shared[v] = rows.next(v)
		}
		r.derived = shared[v]
	}
	return true
}

// loses returns what reports whether a request lost something; nil if the loss is regret.
func (a *Analyzer) loses() func(*request) bool {
	hasTargets, hasRegret := false, false
	for _, r := range a.requests {
		hasTargets = hasTargets || r.judged
		hasRegret = hasRegret || r.choice.estimate != nil && !r.excluded
	}
	switch {
	case hasTargets:
		return func(r *request) bool { return r.judged && !r.met }
	case hasRegret:
		return nil
	}
	median, _ := a.medianTTFT()
	return func(r *request) bool {
		return !r.excluded && (!a.completed(r) || r.isLate(median))
	}
}

// medianTTFT is the lower median of the µs to first tokens; without any it is as large as may be multiplied.
func (a *Analyzer) medianTTFT() (median int64, known bool) {
	ttfts := make([]int64, 0, len(a.requests))
	for _, r := range a.requests {
		if r.times.firstToken != never {
			ttfts = append(ttfts, int64(r.times.firstToken-r.times.arrival))
		}
	}
	if len(ttfts) == 0 {
		return math.MaxInt64 / lateFactor, false
	}
	return stat.Nth(ttfts, (len(ttfts)-1)/2), true
}

// isLate reports whether the first token came late.
func (r *request) isLate(median int64) bool {
	return int64(r.times.firstToken-r.times.arrival) > lateFactor*median
}

// measure measures what Find left out.
func (a *Analyzer) measure() {
	if !a.measuresLost {
		return
	}
	a.measuresLost = false
	var rows derivedRows
	for _, r := range a.requests {
		r.derived = rows.next(r.verdict)
	}
	a.measureRecomputed()
	a.measureReplicas()
	a.measureRest()
}
