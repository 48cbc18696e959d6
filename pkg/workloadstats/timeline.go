package workloadstats

import (
	"slices"

	"blis/pkg/stream"
)

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
	begun  bool
	first  stream.Micros
	base   int
	counts []int64
}

func (t *timeline) add(at stream.Micros) {
	if !t.begun {
		t.begun, t.first = true, at
	}
	second := int64(at-t.first) / secondInUS
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
	if !t.begun {
		return Timeline{BucketS: widths[0], Counts: []int64{}}
	}
	base := bases[t.base]
	seconds := int64(len(t.counts)) * base
	for _, w := range widths {
		if w >= base && (seconds+w-1)/w <= maxBuckets || w == widths[len(widths)-1] {
			return Timeline{BucketS: w, Counts: merge(t.counts, w/base)}
		}
	}
	panic("workloadstats: no bucket width") // the last width always matches
}

// merge adds up groups of n counts.
func merge(counts []int64, n int64) []int64 {
	merged := make([]int64, (int64(len(counts))+n-1)/n)
	for i, c := range counts {
		merged[int64(i)/n] += c
	}
	return merged
}
