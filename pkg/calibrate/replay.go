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

// timing is what one request measured, in µs; NaN if unknown. queue is the time in a
// replica's queue, of simulated requests.
type timing struct{ ttft, e2e, queue float64 }

// timingOf is the timing of a request; all NaN if it did not complete.
func timingOf(o *stream.Outcome) timing {
	between := func(from, to stream.Micros) float64 {
		if o.State != stream.StateCompleted || from == stream.Never || to == stream.Never {
			return math.NaN()
		}
		return float64(to - from)
	}
	return timing{between(o.ArrivalUS, o.FirstTokenUS), between(o.ArrivalUS, o.CompletedUS),
		between(o.EnqueuedUS, o.ScheduledUS)}
}

// tpot is the time from the first token to the last, per token after the first.
func (t timing) tpot(output int64) float64 {
	if output < 2 {
		return math.NaN()
	}
	return (t.e2e - t.ttft) / float64(output-1)
}

// engine is what replays need to know of the server's engine.
type engine struct {
	replicas int
	async    bool // asynchronous scheduling
	maxSeqs  int  // batch slots of a replica
	kvTokens int  // tokens that a replica's KV blocks hold
}

// replay is a recorded run as the simulator replays it.
type replay struct {
	name string // file and run
	run  string // name of the run in its file
	file *recording.Recording
	// serverClock: times are the server's own. hasArrivals: without arrivals nothing can be
	// replayed.
	serverClock, hasArrivals bool
	engine                   engine
	player                   *sim.Player
	requests                 []stream.Request
	outcomes                 []stream.Outcome // of the same requests
	measured                 []timing
	stages                   []recording.Stage
	period                   int // with which prompts repeat; 0: they do not
	// hiddenPrefixes: prompts hit the prefix cache, but the recording does not say which.
	hiddenPrefixes bool
	prefix         int64  // tokens with which all prompts begin
	fitted         []bool // the requests that the fit uses
	// concurrent is how many sequences per replica decoded while a request waited for its
	// first token.
	concurrent []float64
	// blocks are groups of requests, neighbors in time, that are compared as one, by features.
	blocks   [][]int
	features [][features]float64
	// longer and crowded are 1 for requests with longer prompts, and with more concurrent sequences, than
	// the medians of their blocks, else 0.
	longer, crowded []int
}

// addReplay prepares a run for replay, unless no request of it has an E2E time.
func (s *setup) addReplay(f *recording.Recording, run *recording.Run) error {
	e := &s.deployment.Engine
	name := strings.TrimSpace(filepath.Base(f.Path) + " " + run.Name)
	r := &replay{name: name, run: run.Name, file: f, serverClock: run.Clock == recording.ServerClock,
		hasArrivals: run.Arrivals, stages: run.Stages, engine: engine{s.replicas(name, run), e.AsyncScheduling,
			e.ActiveSeqs() * e.DataParallelSize, s.kvTokens()}}
	s.readRequests(r, run)
	if !slices.ContainsFunc(r.measured, func(m timing) bool { return !math.IsNaN(m.e2e) }) {
		return nil
	}
	c, err := s.cluster(r.engine.replicas)
	if err == nil {
		r.player, err = sim.NewPlayer(c)
	}
	s.replays = append(s.replays, r)
	return err
}

// readRequests takes the requests of a run, with the output tokens that the user states or, if some of the recorded
// ones are wrong and the others nearly equal, with the same number each.
func (s *setup) readRequests(r *replay, run *recording.Run) {
	if n := s.options.OutputTokens; n > 0 {
		run.SetOutputTokens(n)
	} else {
		for _, w := range run.RepairOutputTokens() {
			s.warnf("%s: %s", r.name, w)
		}
	}
	r.prefix = s.options.SharedPrefix
	run.SetSharedPrefix(r.prefix)
	share := 0.0
	if r.period, share = run.Period(); r.period > 0 {
		s.warnf("%s: %.0f %% of prompts are as long as the one %d requests before: replayed as repeated prompts "+
			"that hit the prefix cache", r.name, 100*share, r.period)
	}
	byID, failed := map[string]*stream.Outcome{}, 0
	for i := range run.Outcomes {
		o := &run.Outcomes[i]
		byID[o.ID] = o
		if o.State != stream.StateCompleted {
			failed++
		}
	}
	if failed > 0 {
		s.warnf("%s: %d of %d requests did not complete: the replay lacks part of their load",
			r.name, failed, len(byID))
	}
	if !run.HasArrivalTimes() { // the server's own times may do
		r.hasArrivals = false
		return
	}
	var cached, prompts, uncounted int64
	for _, q := range run.Requests(r.period) {
		if q.OutputTokens == 0 {
			uncounted++
			continue
		}
		o := byID[q.ID]
		if prompts += q.InputTokens; len(q.Prompt) == 0 {
			cached += o.CachedTokens
		}
		q.Model, q.SLOClass, q.DeadlineUS = "", "", stream.Never
		r.requests, r.outcomes = append(r.requests, q), append(r.outcomes, *o)
		r.measured, r.fitted = append(r.measured, timingOf(o)), append(r.fitted, true)
	}
	if r.hiddenPrefixes = float64(cached) > 0.02*float64(prompts); r.hiddenPrefixes {
		s.warnf("%s: %.0f %% of prompt tokens were cached, but shared prefixes are not recorded: "+
			"the replay computes them and overestimates TTFT", r.name, 100*float64(cached)/float64(prompts))
	}
	if uncounted > 0 {
		s.warnf("%s: %d requests without output tokens are ignored: give --output-tokens", r.name, uncounted)
	}
}

// A block has at least blockSize requests and 1/maxBlocks of the time: the TTFT of one
// request varies by a tenth with its phase inside a step, the mean of fifty by a hundredth,
// and an hour at a low rate counts as much as one at a high rate. A short run has smaller
// blocks, of at least minBlockSize, so that there are several to estimate noise from.
const (
	blockSize    = 50
	minBlockSize = 5
	minBlocks    = 8
	maxBlocks    = 120
)

// makeBlocks groups the fitted requests.
func (r *replay) makeBlocks() {
	r.blocks, r.features, r.concurrent = nil, nil, make([]float64, len(r.requests))
	r.longer, r.crowded = make([]int, len(r.requests)), make([]int, len(r.requests))
	decoding := r.decodingProfile()
	var time, start stream.Micros
	fitted := 0
	for i, q := range r.requests {
		at := float64(q.ArrivalUS)
		r.concurrent[i] = decoding.Mean(at, at+r.measured[i].ttft) / float64(r.engine.replicas)
		if r.fits(i) {
			fitted++
		}
		if r.fitted[i] && i > 0 && r.fitted[i-1] {
			time += q.ArrivalUS - r.requests[i-1].ArrivalUS
		}
	}
	size := min(blockSize, max(minBlockSize, fitted/minBlocks))
	last := -1 // the block that is filled
	for i, q := range r.requests {
		if !r.fits(i) {
			continue
		}
		if last < 0 || len(r.blocks[last]) >= size && q.ArrivalUS-start >= time/maxBlocks {
			r.blocks, start, last = append(r.blocks, nil), q.ArrivalUS, last+1
		}
		r.blocks[last] = append(r.blocks[last], i)
	}
	if last > 0 && len(r.blocks[last]) < size/2 {
		r.blocks = r.blocks[:last]
	}
	for _, b := range r.blocks {
		markAbove(r.longer, b, func(i int) float64 { return float64(r.requests[i].InputTokens) })
		markAbove(r.crowded, b, func(i int) float64 { return r.concurrent[i] })
		r.features = append(r.features, r.featuresOf(r.measured, b))
	}
}

// fits reports whether the fit uses a request and knows its E2E time.
func (r *replay) fits(i int) bool { return r.fitted[i] && !math.IsNaN(r.measured[i].e2e) }

// simulate replays the run.
func (r *replay) simulate(ctx context.Context, m latency.Model) ([]timing, error) {
	return r.simulateRequests(ctx, r.requests, m)
}

// simulateRequests replays requests in place of the run's, of which they differ in their prompts only.
func (r *replay) simulateRequests(ctx context.Context, requests []stream.Request, m latency.Model) ([]timing, error) {
	nan := math.NaN()
	out := slices.Repeat([]timing{{nan, nan, nan}}, len(r.requests))
	err := r.player.Play(ctx, requests[:r.requestsNeeded()], m, func(i int, o *stream.Outcome) {
		out[i] = timingOf(o)
	})
	return out, err
}

// requestsNeeded is how many requests must be replayed: those that arrive after the last fitted one
// matter while a fitted one is running.
func (r *replay) requestsNeeded() (n int) {
	end := 0.0
	for i, t := range r.measured {
		at := float64(r.requests[i].ArrivalUS)
		if r.fits(i) {
			end = max(end, at+2*t.e2e)
		} else if r.fitted[i] {
			end = max(end, at)
		}
	}
	for n < len(r.requests) && float64(r.requests[n].ArrivalUS) <= end {
		n++
	}
	return n
}

// isRepeat reports whether a prompt is that of an earlier request, and was cached.
func (r *replay) isRepeat(i int) bool { return r.period > 0 && i >= r.period }

// features is how many numbers a block is compared by.
const features = 6

// featuresOf are a block's mean TPOT, E2E and TTFT, and the mean TTFT of its shorter and of
// its longer prompts, which identifies the time per prompt token: all as logarithms. The last
// is how much longer TTFT is for requests with more concurrent sequences than for the others.
func (r *replay) featuresOf(all []timing, block []int) [features]float64 {
	list := func() []float64 { return make([]float64, 0, len(block)) }
	tpot, e2e, ttft := list(), list(), list()
	byLength, byConcurrency := [2][]float64{list(), list()}, [2][]float64{list(), list()}
	for _, i := range block {
		t, length, concurrency := all[i], &byLength[r.longer[i]], &byConcurrency[r.crowded[i]]
		tpot, e2e = appendKnown(tpot, t.tpot(r.requests[i].OutputTokens)), appendKnown(e2e, t.e2e)
		ttft, *length = appendKnown(ttft, t.ttft), appendKnown(*length, t.ttft)
		*concurrency = appendKnown(*concurrency, t.ttft)
	}
	return [features]float64{math.Log(stat.Mean(tpot)), math.Log(stat.Mean(e2e)), math.Log(stat.Mean(ttft)),
		logTrimmedMean(byLength[0]), logTrimmedMean(byLength[1]),
		logTrimmedMean(byConcurrency[1]) - logTrimmedMean(byConcurrency[0])}
}

// appendKnown appends a value that is no NaN.
func appendKnown(list []float64, v float64) []float64 {
	if math.IsNaN(v) {
		return list
	}
	return append(list, v)
}

// logTrimmedMean is the logarithm of the mean of a list without its largest tenth, which may
// be stalls; NaN if the list is empty. It sorts the list.
func logTrimmedMean(list []float64) float64 {
	slices.Sort(list)
	return math.Log(stat.Mean(list[:len(list)-len(list)/10]))
}

// markAbove marks by 1 the requests of a block whose value is not at most the block's lower median.
func markAbove(marks, block []int, value func(i int) float64) {
	var all []float64
	for _, i := range block {
		all = append(all, value(i))
	}
	slices.Sort(all)
	for _, i := range block {
		if !(value(i) <= all[(len(all)-1)/2]) {
			marks[i] = 1
		}
	}
}

// residuals are the logarithms of simulated over measured features, block by block.
func (r *replay) residuals(simulated []timing) []float64 {
	out := make([]float64, 0, features*len(r.blocks))
	for i, b := range r.blocks {
		for k, v := range r.featuresOf(simulated, b) {
			out = append(out, v-r.features[i][k])
		}
	}
	return out
}
