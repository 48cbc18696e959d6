package anomaly

import (
	"math"
	"slices"
)

// window is a queue of samples. Most are no occurrences: these take a quarter of the memory of a sample.
type window struct {
	all   []kept // all[first:] are in it
	first int
	// whole[firstWhole:] has those of them that are kept whole.
	whole      []sample
	firstWhole int
}

// kept is a sample. One that is nothing but a time and a weight has these; weight is -1 for one that is kept whole.
type kept struct {
	at     int64
	weight int32
	whole  int32 // its index in whole
}

func (w *window) len() int { return len(w.all) - w.first }

// from and until are the times of the first and the last sample.
func (w *window) from() int64  { return w.all[w.first].at }
func (w *window) until() int64 { return w.all[len(w.all)-1].at }

// add adds a sample at the end.
func (w *window) add(x sample) {
	if x.bad == 0 && !x.byPolicy && !x.byPrefill && x.all >= 0 && x.all <= math.MaxInt32 {
		w.all = append(w.all, kept{at: x.at, weight: int32(x.all)})
		return
	}
	w.all = append(w.all, kept{x.at, -1, int32(len(w.whole))})
	w.whole = append(w.whole, x)
}

// at returns sample i. Of one that is no occurrence it has what counts.
func (w *window) at(i int) sample {
	k := w.all[w.first+i]
	if k.weight < 0 {
		return w.whole[k.whole]
	}
	return sample{at: k.at, all: int64(k.weight)}
}

// drop removes the first sample.
func (w *window) drop() {
	if w.all[w.first].weight < 0 {
		w.firstWhole++
	}
	if w.first++; 2*w.first <= len(w.all) {
		return
	}
	w.all = slices.Delete(w.all, 0, w.first)
	w.whole = slices.Delete(w.whole, 0, w.firstWhole)
	for i := range w.all {
		w.all[i].whole -= int32(w.firstWhole)
	}
	w.first, w.firstWhole = 0, 0
}
