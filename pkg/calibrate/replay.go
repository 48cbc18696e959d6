package calibrate

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/latency"
	"blis/pkg/recording"
	"blis/pkg/sim"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// seen is what one request saw, in µs: NaN where it is not known. queue is the time
// in a replica's queue, of simulated requests.
type seen struct{ ttft, e2e, queue float64 }

// unseen is nothing known.
var unseen = seen{math.NaN(), math.NaN(), math.NaN()}

// tpot is the time from the first token to the last over the gaps between.
func (s seen) tpot(output int64) float64 {
	if output < 2 {
		return math.NaN()
	}
	return (s.e2e - s.ttft) / float64(output-1)
}

// run is a run of a recording as it is replayed.
type run struct {
	name string
	// of is its name within the file: a file's own name says nothing of its data.
	of   string
	file *recording.Recording
	// clock is the recording's; arrivals says whether it knows them: without them
	// nothing can be replayed.
	clock    string
	arrivals bool
	player   *sim.Player
	// otherwise plays with asynchronous scheduling where player does not, and the
	// other way round.
	otherwise *sim.Player
	// replicas of the server, and whether the player schedules asynchronously.
	replicas int
	async    bool
	seats    int // the most sequences that a replica runs
	room     int // tokens that a replica's cache has blocks for
	requests []stream.Request
	outcomes []stream.Outcome // of the same requests, where they completed
	measured []seen
	stages   []recording.Stage
	period   int // of prompts that repeat; 0: none
	// cached: prompts shared tokens, it is not known which.
	cached bool
	// used says which requests the fit sees.
	used []bool
	// beside is how many sequences decoded on a replica while a request waited for its
	// first token, as recorded.
	beside []float64
	// blocks are the requests that are compared together: neighbours in time.
	blocks [][]int
}

// nameOf tells a run from the others of all files.
func nameOf(f *recording.Recording, of *recording.Run) string {
	return strings.TrimSpace(filepath.Base(f.Path) + " " + of.Name)
}

// fill takes the requests of a recording's run. Where answers were not counted, or
// are said to be of another length, that is set first.
func (s *setup) fill(r *run, of *recording.Run) {
	if n := s.options.OutputTokens; n > 0 {
		of.SetOutputTokens(n)
	} else if odd := of.OutputCounts(); odd != "" {
		s.warnf("%s: %s", r.name, odd)
	}
	r.stages = of.Stages
	share := 0.0
	if r.period, share = of.Period(); r.period > 0 {
		s.warnf("%s: %.0f %% of prompts are as long as the one %d requests before: taken as the same prompts, whose tokens the prefix cache had", r.name, 100*share, r.period)
	}
	lost := 0
	for i := range of.Outcomes {
		if of.Outcomes[i].State != stream.StateCompleted {
			lost++
		}
	}
	if lost > 0 {
		s.warnf("%s: %d of %d requests did not complete: what they loaded the server with is known in part at best, and a replay is as busy as the rest", r.name, lost, len(of.Outcomes))
	}
	byID := map[string]*stream.Outcome{}
	for i := range of.Outcomes {
		byID[of.Outcomes[i].ID] = &of.Outcomes[i]
	}
	requests, err := of.Workload(r.period)
	if err != nil { // without arrivals; the server's own spans may do
		r.arrivals = false
		return
	}
	uncounted := 0
	for _, q := range requests {
		o := byID[q.ID]
		if q.OutputTokens == 0 {
			uncounted++
			continue
		}
		m := unseen
		if o.State == stream.StateCompleted {
			m.e2e = float64(o.CompletedUS - o.ArrivalUS)
			if o.FirstTokenUS != stream.Never {
				m.ttft = float64(o.FirstTokenUS - o.ArrivalUS)
			}
		}
		q.Model, q.SLOClass, q.DeadlineUS = "", "", stream.Never
		r.requests, r.outcomes, r.measured, r.used = append(r.requests, q), append(r.outcomes, *o), append(r.measured, m), append(r.used, true)
	}
	var cached, prompts int64
	for i := range r.outcomes {
		if len(r.requests[i].Prompt) == 0 {
			cached += r.outcomes[i].CachedTokens
		}
		prompts += r.requests[i].InputTokens
	}
	if r.cached = float64(cached) > 0.02*float64(prompts); r.cached {
		s.warnf("%s: %.0f %% of prompt tokens were cached, and the recording does not say what prompts share: a replay computes them, and its TTFT is too long", r.name, 100*float64(cached)/float64(prompts))
	}
	if uncounted > 0 {
		s.warnf("%s: %d requests are left out, whose output tokens were not counted: give --output-tokens", r.name, uncounted)
	}
}

// warnTooSoon warns of requests whose first token came in less than half of the time
// that GPUs take for their prompts by a roofline, so that parts of these were cached.
// It says nothing of prompts that share less.
func (s *setup) warnTooSoon(r *run) {
	soon, timed := 0, 0
	for i, q := range r.requests {
		if math.IsNaN(r.measured[i].ttft) || len(q.Prompt) > 0 {
			continue
		}
		timed++
		n := q.InputTokens
		if us := s.roofline.Step(latency.Batch{Prefill: n, Chunks: 1, Pairs: n * (n + 1) / 2}); r.measured[i].ttft < float64(us)/2 {
			soon++
		}
	}
	if 50*soon > timed {
		s.warnf("%s: %d of %d requests had their first token in less than half of the time that GPUs take to compute their prompts: these were cached, at least in part, and the recording does not say what they share; a replay computes them, and its TTFT is too long", r.name, soon, timed)
	}
}

// A block has at least blockSize requests, and lasts at least a part of all the
// time: one request's place inside a step is chance and makes its TTFT differ by a
// tenth, of fifty it is a hundredth; and an hour at a low rate is worth as much as
// one at a high rate. Of a short run blocks are smaller, so that there are a few to
// tell chance by, but not below leastSize.
const (
	blockSize   = 50
	leastSize   = 5
	leastBlocks = 8
	mostBlocks  = 120
)

// divide makes blocks of the used requests.
func (r *run) divide() {
	r.blocks = nil
	decoding := r.decoding()
	r.beside = make([]float64, len(r.requests))
	for i, q := range r.requests {
		at := float64(q.ArrivalUS)
		r.beside[i] = decoding.mean(at, at+r.measured[i].ttft) / float64(r.replicas)
	}
	var span, last stream.Micros
	used := 0
	for i, q := range r.requests {
		if r.used[i] && !math.IsNaN(r.measured[i].e2e) {
			used++
		}
		if r.used[i] && i > 0 && r.used[i-1] {
			span += q.ArrivalUS - r.requests[i-1].ArrivalUS
		}
	}
	least := span / mostBlocks
	size := min(blockSize, max(leastSize, used/leastBlocks))
	var block []int
	for i := range r.requests {
		if !r.used[i] || math.IsNaN(r.measured[i].e2e) {
			continue
		}
		if len(block) >= size && r.requests[i].ArrivalUS-last >= least {
			r.blocks = append(r.blocks, block)
			block = nil
		}
		if len(block) == 0 {
			last = r.requests[i].ArrivalUS
		}
		block = append(block, i)
	}
	if len(block) >= size/2 || len(r.blocks) == 0 && len(block) > 0 {
		r.blocks = append(r.blocks, block)
	}
}

// play simulates the run.
func (r *run) play(ctx context.Context, m latency.Model) ([]seen, error) {
	out := make([]seen, len(r.requests))
	for i := range out {
		out[i] = unseen
	}
	err := r.player.Play(ctx, r.requests[:r.needed()], m, func(i int, o *stream.Outcome) {
		if o.State == stream.StateCompleted {
			out[i] = seen{float64(o.FirstTokenUS - o.ArrivalUS), float64(o.CompletedUS - o.ArrivalUS), float64(o.ScheduledUS - o.EnqueuedUS)}
		}
	})
	return out, err
}

// needed is how many requests must be played: those after the last that counts
// matter while one that counts is there.
func (r *run) needed() int {
	last := len(r.requests) - 1
	for last > 0 && !r.used[last] {
		last--
	}
	end := float64(r.requests[last].ArrivalUS)
	for i, s := range r.measured {
		if r.used[i] && !math.IsNaN(s.e2e) {
			end = max(end, float64(r.requests[i].ArrivalUS)+2*s.e2e)
		}
	}
	n := last + 1
	for n < len(r.requests) && float64(r.requests[n].ArrivalUS) <= end {
		n++
	}
	return n
}

// features are what a block is compared by.
const features = 6

// featuresOf are a block's mean TPOT, E2E and TTFT, and the mean TTFT of its shorter
// and of its longer prompts, which tells what a token of prompt takes, but for the
// longest tenth, which may be stalls: all as logarithms. The last is by how much TTFT
// is more for those that had more beside them than for the others.
func (r *run) featuresOf(all []seen, block []int) (f [features]float64) {
	var tpot, e2e, ttft []float64
	var half, crowd [2][]float64
	middle, crowded := r.middle(block), r.crowded(block)
	for _, i := range block {
		s, q := all[i], &r.requests[i]
		if math.IsNaN(s.e2e) {
			continue
		}
		e2e = append(e2e, s.e2e)
		if x := s.tpot(q.OutputTokens); !math.IsNaN(x) {
			tpot = append(tpot, x)
		}
		if math.IsNaN(s.ttft) {
			continue
		}
		ttft = append(ttft, s.ttft)
		if q.InputTokens <= middle {
			half[0] = append(half[0], s.ttft)
		} else {
			half[1] = append(half[1], s.ttft)
		}
		if r.beside[i] <= crowded {
			crowd[0] = append(crowd[0], s.ttft)
		} else {
			crowd[1] = append(crowd[1], s.ttft)
		}
	}
	return [features]float64{math.Log(stat.Mean(tpot)), math.Log(stat.Mean(e2e)), math.Log(stat.Mean(ttft)),
		logTrimmed(half[0]), logTrimmed(half[1]), logTrimmed(crowd[1]) - logTrimmed(crowd[0])}
}

// logTrimmed is the logarithm of the mean of a list, which it sorts, without its longest
// tenth; NaN of an empty one.
func logTrimmed(list []float64) float64 {
	slices.Sort(list)
	return math.Log(stat.Mean(list[:len(list)-len(list)/10]))
}

// crowded is the median of the sequences beside the requests of a block.
func (r *run) crowded(block []int) float64 {
	var beside []float64
	for _, i := range block {
		beside = append(beside, r.beside[i])
	}
	slices.Sort(beside)
	return beside[(len(beside)-1)/2]
}

// middle is the median of the input tokens of a block.
func (r *run) middle(block []int) int64 {
	var lengths []int64
	for _, i := range block {
		lengths = append(lengths, r.requests[i].InputTokens)
	}
	slices.Sort(lengths)
	return lengths[(len(lengths)-1)/2]
}

// compare returns, for each block and feature, how much too long it is simulated,
// as the logarithm of the ratio.
func (r *run) compare(simulated []seen) []float64 {
	out := make([]float64, 0, features*len(r.blocks))
	for _, b := range r.blocks {
		s, m := r.featuresOf(simulated, b), r.featuresOf(r.measured, b)
		for k := range s {
			out = append(out, s[k]-m[k])
		}
	}
	return out
}
