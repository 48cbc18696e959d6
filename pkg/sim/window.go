package sim

import "slices"

// slidingRatio is the ratio of two sums over a sliding window of time.
type slidingRatio struct {
	samples  []sample
	first    int // in the window
	num, den int64
}

type sample struct{ at, num, den int64 }

// windowUS is the window of the signals called recent.
const windowUS = 10e6

// add adds num and den at a time that is not before the last one.
func (r *slidingRatio) add(at, num, den int64) {
	r.samples = append(r.samples, sample{at, num, den})
	r.num += num
	r.den += den
}

// ratio is the sum of num over the sum of den in the window that ends at now, 0 if the window is
// empty.
func (r *slidingRatio) ratio(now int64) float64 {
	for r.first < len(r.samples) && r.samples[r.first].at <= now-windowUS {
		r.num -= r.samples[r.first].num
		r.den -= r.samples[r.first].den
		r.first++
	}
	if 2*r.first > len(r.samples) {
		r.samples = slices.Delete(r.samples, 0, r.first)
		r.first = 0
	}
	if r.den == 0 {
		return 0
	}
	return float64(r.num) / float64(r.den)
}

// eventRates counts the events of the last second, 10 s and 60 s.
type eventRates struct {
	times []int64
	// first index of times that is in each window
	first [len(spansUS)]int
}

var spansUS = [...]int64{1e6, windowUS, 60e6}

func (r *eventRates) add(at int64) { r.times = append(r.times, at) }

// count is the number of events in window w, which ends at now.
func (r *eventRates) count(w int, now int64) int {
	for r.first[w] < len(r.times) && r.times[r.first[w]] <= now-spansUS[w] {
		r.first[w]++
	}
	return len(r.times) - r.first[w]
}

// perSecond is the rate in window w that ends at now.
func (r *eventRates) perSecond(w int, now int64) float64 {
	return float64(r.count(w, now)) * 1e6 / float64(spansUS[w])
}

// burst reports whether the last second had at least 10 events and three times the rate of the last
// minute.
func (r *eventRates) burst(now int64) bool {
	defer r.prune(now)
	return r.count(0, now) >= 10 && float64(r.count(0, now)) > 3*r.perSecond(2, now)
}

// prune drops events that are in no window.
func (r *eventRates) prune(now int64) {
	last := len(spansUS) - 1
	r.count(last, now)
	gone := r.first[last]
	if 2*gone <= len(r.times) {
		return
	}
	r.times = slices.Delete(r.times, 0, gone)
	for w := range r.first {
		r.first[w] = max(0, r.first[w]-gone)
	}
}
