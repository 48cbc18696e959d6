package attribution

import "math"

// partSums add up the parts of requests.
type partSums struct {
	n   int64
	sum partTimes
}

func (s *partSums) add(r *request) {
	s.n++
	for p, us := range r.times.split() {
		s.sum[p] += us
	}
}

func (s *partSums) means() PartMeans {
	if s.n == 0 {
		return PartMeans{}
	}
	var m [PartCount]float64
	for p := range s.sum {
		m[p] = float64(s.sum[p]) / float64(s.n) / 1000
	}
	return PartMeans{s.n, &m}
}

// baseline is the mean of each part, in µs, over the completed requests of a class that lost
// nothing; PartDecode is for each token after the first.
type baseline struct {
	n, tokens float64
	mean      [PartCount]float64
}

// baselines are those of all classes, by the number of the class.
func (a *Analyzer) baselines() map[int32]*baseline {
	byClass := map[int32]*baseline{}
	for _, r := range a.requests {
		if !r.verdict.judged || r.lost() || !a.completed(r) {
			continue
		}
		b := byClass[r.labels.class]
		if b == nil {
			b = &baseline{}
			byClass[r.labels.class] = b
		}
		b.n++
		b.tokens += float64(r.tokens.output - 1)
		for p, us := range r.times.split() {
			b.mean[p] += float64(us)
		}
	}
	for _, b := range byClass {
		for p := range b.mean {
			if Part(p) != PartDecode {
				b.mean[p] /= b.n
			} else if b.tokens > 0 {
				b.mean[p] /= b.tokens
			}
		}
	}
	return byClass
}

// partsOf are the parts that count toward the missed targets.
func partsOf(missed targetSet) partSet {
	set := setOf(PartPreempted)
	if missed&(missedTTFT|missedE2E) != 0 {
		set |= setOf(PartAdmission, PartDispatch, PartQueue, PartPrefill)
	}
	if missed&(missedTPOT|missedE2E) != 0 {
		set |= setOf(PartDecode)
	}
	return set
}

// largestExcess is the part that exceeds most what the baseline takes for a request with that
// output, among those that count toward the missed targets. b may be nil.
func (r *request) largestExcess(b *baseline) Part {
	relevant, largest, most := partsOf(r.verdict.missed), PartQueue, math.Inf(-1)
	for i, us := range r.times.split() {
		p, excess := Part(i), float64(us)
		switch {
		case b == nil:
		case p == PartDecode:
			excess -= float64(b.mean[p] * float64(r.tokens.output-1))
		default:
			excess -= b.mean[p]
		}
		if us > 0 && (relevant.has(p) || r.verdict.missed == 0) && excess > most {
			largest, most = p, excess
		}
	}
	return largest
}
