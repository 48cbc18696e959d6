package calibrate

import (
	"cmp"
	"math"
	"slices"
)

// A recorded batch is full if it has nearly its largest number of sequences for at least minFullShare of the time,
// minFullRatio times as long as slightly fewer, and at least minWaiting requests wait meanwhile, minWaitingRatio
// times as many as else. A load without a limit has its peaks for a moment only. The numbers separate recordings of
// servers whose max_num_seqs binds from others by a wide margin, except that with few full seconds nothing is said.
const (
	minFullShare    = 0.01
	minFullRatio    = 1.5
	minWaiting      = 3
	minWaitingRatio = 2
)

// checkSlots finds that requests wait for a batch slot in the recording, though the engine has more of them.
func checkSlots(r *report) {
	for _, run := range r.setup.replays {
		if len(run.requests) == 0 {
			continue
		}
		limit := math.Round(run.fullBatch() / float64(run.engine.replicas))
		if limit > 0 && tolerance*limit < float64(run.engine.maxSeqs) {
			r.setup.warnf("%s: at most %.0f sequences decode at once while others wait, but max_num_seqs is %d here: "+
				"if the server had another one, give it by --cluster, else the fit takes waiting for slow steps; "+
				"too few KV blocks look alike", run.name, limit, run.engine.maxSeqs)
		}
	}
}

// fullBatch is the number of sequences that decode while the batch of a recording is full; 0 if it is not.
func (r *replay) fullBatch() float64 {
	type change struct{ at, waiting, decoding float64 }
	var changes []change
	for i, t := range r.measured {
		if at := float64(r.requests[i].ArrivalUS); !math.IsNaN(t.ttft + t.e2e) {
			changes = append(changes, change{at, 1, 0}, change{at + t.ttft, -1, 1}, change{at + t.e2e, 0, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	peak := r.decodingProfile().Peak()
	width := 0.01*peak + 1
	var now change
	var full, below, less, waitingFull, waitingLess float64 // times, and times weighted with waiting requests
	for _, c := range changes {
		time := c.at - now.at
		switch {
		case now.decoding >= peak-width:
			full, waitingFull = full+time, waitingFull+time*now.waiting
		case now.decoding > 0:
			less, waitingLess = less+time, waitingLess+time*now.waiting
			if now.decoding >= peak-2*width {
				below += time
			}
		}
		now = change{c.at, now.waiting + c.waiting, now.decoding + c.decoding}
	}
	waiting := waitingFull / full
	if full >= minFullShare*(full+less) && full >= minFullRatio*below && waiting >= minWaiting &&
		waiting*less >= minWaitingRatio*waitingLess {
		return peak
	}
	return 0
}
