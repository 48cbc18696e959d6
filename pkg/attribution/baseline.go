package attribution

import "math"

// partMeans are those of the completed requests that lost something, and of those that did not.
func (a *Analyzer) partMeans() (lost, met PartMeans) {
	var lostSum, metSum partTimes
	for _, r := range a.requests.all() {
		if !r.verdict.judged || !a.completed(r) {
			continue
		}
		m, sum := &met, &metSum
		if r.lost() {
			m, sum = &lost, &lostSum
		}
		m.Requests++
		for p, us := range r.split() {
			sum[p] += us
		}
	}
	lost.divide(&lostSum)
	met.divide(&metSum)
	return lost, met
}

// divide sets the means of sums.
func (m *PartMeans) divide(sum *partTimes) {
	for p, us := range sum {
		m.MS[p] = float64(us) / float64(m.Requests) / 1000
	}
}

// baseline is the mean of each part, in µs, over the completed requests of a class that lost
// nothing; PartDecode is for each token after the first.
type baseline struct {
	n, tokens float64
	mean      [PartCount]float64
}

// baselines returns the baseline of each class, by the number of the class, zero without one.
func (a *Analyzer) baselines() []baseline {
	byClass := make([]baseline, len(a.names.list))
	for _, r := range a.requests.all() {
		if !r.verdict.judged || r.lost() || !a.completed(r) {
			continue
		}
		b := &byClass[r.labels.class]
		b.n++
		b.tokens += float64(r.tokens.output - 1)
		for p, us := range r.split() {
			b.mean[p] += float64(us)
		}
	}
	for i := range byClass {
		b := &byClass[i]
		for p := range b.mean {
			n := b.n
			if Part(p) == PartDecode {
				n = b.tokens
			}
			b.mean[p] /= max(1, n)
		}
	}
	return byClass
}

// ignoreWaits leaves only service: where those that lose nothing are merely faster, they may have waited too.
func (b *baseline) ignoreWaits() {
	for _, p := range []Part{PartRetries, PartAdmission, PartFlow, PartEncode, PartFrontend, PartQueue,
		PartTransferWait, PartPreempted} {
		b.mean[p] = 0
	}
}

// partsOf are the parts that count toward the missed targets.
func partsOf(missed targetSet) partSet {
	set := setOf(PartPreempted)
	if missed&(missedTTFT|missedE2E|missedCompletion) != 0 {
		set |= setOf(PartRetries, PartAdmission, PartFlow, PartEncode, PartFrontend, PartQueue, PartPrefill,
			PartTransferWait, PartTransfer)
	}
	if missed&(missedTPOT|missedE2E|missedCompletion) != 0 {
		set |= setOf(PartDecode)
	}
	return set
}

// minExcess is the share of the time of all parts that the excess of one must have.
const minExcess = 0.1

// largestExcess returns the part that took longest compared with the baseline for a request with as
// many output tokens, among those that count toward the missed targets; where none took much longer, that which took
// longest.
func (r *request) largestExcess(b *baseline) Part {
	relevant, largest, most := partsOf(r.verdict.missed), PartQueue, math.Inf(-1)
	longest, longestUS, total := PartQueue, int64(-1), int64(0)
	for i, us := range r.split() {
		p, excess := Part(i), float64(us)
		if !relevant.has(p) && r.verdict.missed != 0 {
			continue
		}
		if total += us; us > longestUS {
			longest, longestUS = p, us
		}
		if p == PartDecode {
			excess -= float64(b.mean[p] * float64(r.tokens.output-1))
		} else {
			excess -= b.mean[p]
		}
		if us > 0 && excess > most {
			largest, most = p, excess
		}
	}
	if most < minExcess*float64(total) {
		return longest
	}
	return largest
}
