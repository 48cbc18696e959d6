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
	for _, r := range a.requests.all() {
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
	var shared [8]*derived // by what begins the verdict
	for _, r := range a.requests.all() {
		v := verdict{excluded: r.excluded, judged: r.judged, met: r.met, pattern: -1}
		if loses(r) {
			r.derived = rows.next(v)
			continue
		}
		begins := 0
		for bit, is := range [...]bool{r.excluded, r.judged, r.met} {
			if is {
				begins |= 1 << bit
			}
		}
		if shared[begins] == nil {
			shared[begins] = rows.next(v)
			shared[begins].shared = true
		}
		r.derived = shared[begins]
	}
	return true
}

// loses returns what reports whether a request lost something; nil if the loss is regret.
func (a *Analyzer) loses() func(*request) bool {
	hasTargets, hasRegret := false, false
	for _, r := range a.requests.all() {
		hasTargets = hasTargets || r.judged
		hasRegret = hasRegret || r.estimate != nil && !r.excluded
	}
	switch {
	case hasTargets:
		return func(r *request) bool { return r.judged && !r.met }
	case hasRegret:
		return nil
	}
	median := a.medianTTFT().us
	return func(r *request) bool {
		return !r.excluded && (!a.completed(r) || r.isLate(median))
	}
}

// medianTime is a median in µs.
type medianTime struct {
	us    int64
	known bool
}

// medianTTFT is the lower median of the times to first tokens; without any it is as large as may be multiplied.
func (a *Analyzer) medianTTFT() medianTime {
	if a.stats.ttft == nil {
		ttfts := make([]int64, 0, a.requests.len())
		for _, r := range a.requests.all() {
			if at := r.firstToken(); at != never {
				ttfts = append(ttfts, int64(at-r.arrival()))
			}
		}
		a.stats.ttft = &medianTime{us: math.MaxInt64 / lateFactor}
		if len(ttfts) > 0 {
			a.stats.ttft = &medianTime{stat.Nth(ttfts, (len(ttfts)-1)/2), true}
		}
	}
	return *a.stats.ttft
}

// isLate reports whether the first token came late.
func (r *request) isLate(median int64) bool {
	return int64(r.firstToken()-r.arrival()) > lateFactor*median
}

// measure measures what Find left out.
func (a *Analyzer) measure() {
	if !a.measuresLost {
		return
	}
	a.measuresLost = false
	var rows derivedRows
	for _, r := range a.requests.all() {
		r.derived = rows.next(r.verdict)
	}
	a.measureRecomputed()
	a.measureReplicas()
	a.measureRest()
}
