package workloadstats

import (
	"math"

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
	cv := math.Sqrt(a.squares/float64(a.n-1)) / a.mean
	return &cv
}

// rate is the number of arrivals per second over us µs; nil if us is 0.
func (a *arrivals) rate(us int64) *float64 {
	if us <= 0 {
		return nil
	}
	rate := float64(a.n) * 1e6 / float64(us)
	return &rate
}

// minutes counts arrivals per minute from the first one on. It keeps only sums over the completed
// minutes.
type minutes struct {
	begun         bool
	first         stream.Micros
	minute, count int64 // the current minute and its count
	sum, squares  float64
}

func (m *minutes) add(at stream.Micros) {
	if !m.begun {
		m.begun, m.first = true, at
	}
	if minute := int64(at-m.first) / minuteUS; minute > m.minute {
		m.close()
		m.minute = minute
	}
	m.count++
}

// close adds the current minute to the sums. Empty minutes add nothing.
func (m *minutes) close() {
	n := float64(m.count)
	m.sum += n
	m.squares += n * n
	m.count = 0
}

// fano is variance over mean of the counts in the complete minutes up to the last arrival. Counts
// are integers, whose sums of squares are exact up to 2^53.
func (m *minutes) fano(last stream.Micros) (fano *float64, complete int64) {
	if !m.begun {
		return nil, 0
	}
	complete = int64(last-m.first) / minuteUS
	if complete < 2 || m.sum == 0 {
		return nil, complete
	}
	mean := m.sum / float64(complete)
	f := (m.squares/float64(complete) - float64(mean*mean)) / mean
	return &f, complete
}
