package workloadstats

import (
	"math"
	"slices"

	"blis/pkg/stream"
)

const minuteUS = 60_000_000

// arrivals accumulates statistics of arrival times, which are added in order.
type arrivals struct {
	n           int64
	first, last stream.Micros
	// mean is the mean gap so far and squares the sum of squared deviations from it (Welford,
	// Technometrics 4(3), 1962). Sums of squares of large, nearly equal numbers would cancel.
	mean, squares float64
}

func (a *arrivals) add(at stream.Micros) {
	if a.n == 0 {
		a.first, a.last = at, at
	}
	if a.n > 0 {
		gap := float64(at - a.last)
		from := gap - a.mean
		a.mean += from / float64(a.n)
		a.squares += float64(from * (gap - a.mean))
	}
	a.n++
	a.last = at
}

// span is the time from the first to the last.
func (a *arrivals) span() int64 { return int64(a.last - a.first) }

// cv is the coefficient of variation of the gaps; nil with fewer than two gaps or a mean of 0.
func (a *arrivals) cv() *float64 {
	if a.n < 3 || a.mean == 0 {
		return nil
	}
	return new(math.Sqrt(a.squares/float64(a.n-1)) / a.mean)
}

// rate is the number of arrivals per second over us µs; nil if us is 0.
func (a *arrivals) rate(us int64) *float64 {
	if us <= 0 {
		return nil
	}
	return new(float64(a.n) * 1e6 / float64(us))
}

// minutes counts arrivals per minute from the first one on. It keeps only sums over the completed
// minutes.
type minutes struct {
	minute, count int64 // the current minute and its count
	sum, squares  float64
}

// add adds an arrival at a time since the first one, in µs.
func (m *minutes) add(us int64) {
	if minute := us / minuteUS; minute > m.minute { // empty minutes add nothing to the sums
		n := float64(m.count)
		m.sum += n
		m.squares += n * n
		m.minute, m.count = minute, 0
	}
	m.count++
}

// fano is variance over mean of the counts in the complete minutes of the span from the first to the
// last arrival. Counts are integers, whose sums of squares are exact up to 2^53.
func (m *minutes) fano(span int64) (fano *float64, complete int64) {
	complete = span / minuteUS
	if complete < 2 || m.sum == 0 {
		return nil, complete
	}
	mean := m.sum / float64(complete)
	return new((m.squares/float64(complete) - float64(mean*mean)) / mean), complete
}

// Timeline counts the arrivals in intervals of BucketS seconds from the first one on. The last one
// may be incomplete.
type Timeline struct {
	BucketS int64   `json:"bucket_s"`
	Counts  []int64 `json:"counts"`
}

// Rates returns the lowest and the highest rate per second of the complete buckets, which exclude
// the last one; not ok if there are none.
func (t *Timeline) Rates() (lowest, highest float64, ok bool) {
	complete := t.Counts[:max(0, len(t.Counts)-1)]
	if len(complete) == 0 {
		return 0, 0, false
	}
	width := float64(t.BucketS)
	return float64(slices.Min(complete)) / width, float64(slices.Max(complete)) / width, true
}

// widths are the possible bucket widths, in s. Each is a multiple of the bases that are not longer.
var widths = []int64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 2 * 3600, 4 * 3600, 6 * 3600, 12 * 3600,
	24 * 3600}

// bases are the widths in which counts are kept: the first one that needs at most maxCounts counts.
var bases = []int64{1, 60, 3600, 24 * 3600}

const (
	maxCounts  = 1 << 17
	maxBuckets = 60 // of a Timeline, unless it spans years
	secondInUS = 1_000_000
)

// timeline counts arrivals in buckets of bases[base] seconds.
type timeline struct {
	base   int
	counts []int64
}

// add adds an arrival at a time since the first one, in µs.
func (t *timeline) add(us int64) {
	second := us / secondInUS
	for t.base < len(bases)-1 && second/bases[t.base] >= maxCounts {
		t.counts = merge(t.counts, bases[t.base+1]/bases[t.base])
		t.base++
	}
	bucket := second / bases[t.base]
	if more := bucket + 1 - int64(len(t.counts)); more > 0 {
		t.counts = append(t.counts, make([]int64, more)...)
	}
	t.counts[bucket]++
}

// get returns the counts in the narrowest buckets of which there are at most maxBuckets.
func (t *timeline) get() Timeline {
	base := bases[t.base]
	seconds := int64(len(t.counts)) * base
	at := slices.IndexFunc(widths, func(w int64) bool { return w >= base && (seconds+w-1)/w <= maxBuckets })
	if at < 0 {
		at = len(widths) - 1
	}
	return Timeline{BucketS: widths[at], Counts: merge(t.counts, widths[at]/base)}
}

// merge adds up groups of n counts.
func merge(counts []int64, n int64) []int64 {
	merged := make([]int64, (int64(len(counts))+n-1)/n)
	for i, c := range counts {
		merged[int64(i)/n] += c
	}
	return merged
}
