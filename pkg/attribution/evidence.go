package attribution

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

	"blis/pkg/stat"
	"blis/pkg/stream"
)

// evidence is what conditions know about one request besides its contention.
type evidence struct {
	// longAhead are prompt tokens of long prompts of others, and promptsAhead those of all others, that its
	// replica computed while the request waited for its first token, by even progress of each prefill.
	longAhead, promptsAhead float64
	// promptsMeanwhile are those that it computed while the request decoded.
	promptsMeanwhile float64
	// overtaken is the work of requests of no higher priority that joined the queue later and entered a batch earlier.
	overtaken int64
	// peak and wave are the rates of arrivals of the last peakUS and waveUS over that of the run.
	peak, wave float64
	*exceptional
}

// exceptional is evidence that most requests do not have: these share noException.
type exceptional struct {
	// held is the time in which backpressure held a request back, for want of prefill replicas or of room to decode.
	held           struct{ prefillUS, decodeUS int64 }
	slower         float64 // that of the slow replica, see speeds
	slowReplica    int32   // its own one, or one whose share of the requests its peers had to take
	slowConfigured bool    // slower was not measured
	// slowFailure: its replica was slow because of a failure, for slowUS of its time there.
	slowFailure bool
	slowUS      int64
	// fleet counts replicas. Its own one warmed up when it was sent there, or was lost before its end, in which case
	// the auto-scaler had removed it or it had failed.
	fleet                                fleetCounts
	warming, lostReplica, removedReplica bool
	noneServed                           bool  // when it arrived, no replica served, and none had failed
	servedBefore                         int32 // replicas of its deployment, at most, in the last recentUS
	// retryShare is that of retries after time-outs among the requests sent in the last 10 s.
	retryShare float64
	tierUS     int64 // see measureLoads
}

var noException exceptional

// except returns what is exceptional about a request, to change it.
func (e *evidence) except() *exceptional {
	if e.exceptional == &noException {
		e.exceptional = &exceptional{}
	}
	return e.exceptional
}

// Thresholds of evidence.
const (
	minLongPrompt = 4096       // tokens: two steps of the default budget
	peakUS        = 2_000_000  // the window of arrival peaks
	waveUS        = 15_000_000 // that of longer ones
	speedSamples  = 6          // requests with similar company that show how fast a replica is
)

// isLong reports whether the prompt of r, as far as it was computed, is long for this run.
func (a *Analyzer) isLong(r *request) bool {
	return int64(r.tokens.input-r.tokens.cached) >= max(minLongPrompt, longPromptFactor*a.stats.medianInput)
}

// progress is the number of tokens that a replica has computed at each breakpoint, linear in between.
type progress struct {
	at     []stream.Micros
	tokens []float64
}

// of makes p the progress of prefills, each of which computes its tokens at an even rate.
func (p *progress) of(prefills []*request, b *replicaBuffers) {
	n := 2 * len(prefills)
	changes, scratch := b.keyed(n) // when rates change
	rates := slices.Grow(b.rates[:0], n)
	for _, r := range prefills {
		from, to, rate := r.prefillSpan()
		changes = append(changes, stat.Keyed{Key: uint64(from), Tag: uint32(len(rates))},
			stat.Keyed{Key: uint64(to), Tag: uint32(len(rates) + 1)})
		rates = append(rates, rate, -rate)
	}
	b.rates = rates
	changes = stat.SortKeyed(changes, scratch)
	p.at, p.tokens = slices.Grow(p.at[:0], n), slices.Grow(p.tokens[:0], n)
	tokens, rate, last := 0.0, 0.0, uint64(0)
	for len(changes) > 0 {
		k := 1 // changes at the same time
		for k < len(changes) && changes[k].Key == changes[0].Key {
			k++
		}
		slices.SortFunc(changes[:k], func(x, y stat.Keyed) int { return cmp.Compare(rates[x.Tag], rates[y.Tag]) })
		for _, c := range changes[:k] {
			tokens += float64(rate * float64(c.Key-last))
			rate, last = rate+rates[c.Tag], c.Key
			p.at, p.tokens = append(p.at, stream.Micros(c.Key)), append(p.tokens, tokens)
		}
		changes = changes[k:]
	}
}

// last is the number at the last breakpoint up to an instant.
func (p *progress) last(at stream.Micros) float64 {
	i := sort.Search(len(p.at), func(i int) bool { return p.at[i] > at })
	if i == 0 {
		return 0
	}
	return p.tokens[i-1]
}

// until is the number of tokens computed before an instant, which is near the last one with the same place.
func (p *progress) until(at stream.Micros, place *nearby) float64 {
	i := place.find(p.at, at)
	switch {
	case i == 0:
		return 0
	case i == len(p.at):
		return p.tokens[i-1]
	case p.at[i] == at:
		return p.tokens[i]
	}
	part := float64(at-p.at[i-1]) / float64(p.at[i]-p.at[i-1])
	return p.tokens[i-1] + float64(part*(p.tokens[i]-p.tokens[i-1]))
}

// prefillSpan is when r prefilled, and its tokens per µs; nothing if it did not.
func (r *request) prefillSpan() (from, to stream.Micros, rate float64) {
	from, to = r.scheduled(), r.firstTokenOrEnd()
	if from == never || to == never || to <= from {
		return 0, 0, 0
	}
	return from, to, float64(r.tokens.input-r.tokens.cached) / float64(to-from)
}

// measurePrompts finds the prompt tokens of others that were computed while requests of a replica waited.
// b has the progress of all prefills.
func (a *Analyzer) measurePrompts(requests []*request, b *replicaBuffers) {
	all, ofLong := &b.prefills, &b.ofLong
	b.long = b.long[:0]
	for _, r := range requests {
		if a.isLong(r) {
			b.long = append(b.long, r)
		}
	}
	ofLong.of(b.long, b)
	var joined, ended, longJoined, longEnded nearby
	for _, r := range requests {
		until := r.firstTokenOrEnd()
		if until == never {
			continue
		}
		own := 0.0
		if from, to, rate := r.prefillSpan(); to > from {
			own = rate * float64(to-from)
		}
		e := &r.evidence
		e.promptsAhead = max(0, all.until(until, &ended)-all.until(r.enqueued(), &joined)-own)
		e.longAhead = ofLong.until(until, &longEnded) - ofLong.until(r.enqueued(), &longJoined)
		if a.isLong(r) {
			e.longAhead = max(0, e.longAhead-own)
		}
	}
}

// measureOvertaking sums for each request of a replica the work of those whose class has no higher priority, that
// joined the queue later and entered a batch earlier.
func (a *Analyzer) measureOvertaking(requests []*request, b *replicaBuffers) {
	b.joined = append(b.joined[:0], requests...)
	joined := b.joined
	slices.SortStableFunc(joined, func(x, y *request) int { return cmp.Compare(x.enqueued(), y.enqueued()) })
	entered, scratch := b.keyed(len(joined)) // places in the order in which they joined, from 1
	for i, r := range joined {
		entered = append(entered, stat.Keyed{Key: uint64(r.leftQueue()), Tag: uint32(i + 1)})
	}
	entered = stat.SortKeyed(entered, scratch)
	sums := slices.Grow(b.sums[:0], len(a.stats.ranks))[:len(a.stats.ranks)] // by rank of the priority, over the places
	for rank := range sums {
		sums[rank] = slices.Grow(sums[rank][:0], len(joined)+1)[:len(joined)+1]
		clear(sums[rank])
	}
	b.sums = sums
	for _, e := range entered {
		place := int(e.Tag)
		r := joined[place-1]
		own := a.stats.ranks[r.labels.class]
		for rank := range own + 1 {
			r.evidence.overtaken += sums[rank].until(len(joined)) - sums[rank].until(place)
		}
		if r.scheduled() != never {
			sums[own].add(place, r.ownWork())
		}
	}
}

// prefixSums is a Fenwick tree over places from 1.
type prefixSums []int64

func (s prefixSums) add(place int, n int64) {
	for ; place < len(s); place += 1 << bits.TrailingZeros(uint(place)) {
		s[place] += n
	}
}

// until is the sum up to a place.
func (s prefixSums) until(place int) (sum int64) {
	for ; place > 0; place &= place - 1 {
		sum += s[place]
	}
	return sum
}

// measurePeaks finds how much faster than in the whole run requests arrived before each one.
func (a *Analyzer) measurePeaks() {
	arrivals := a.requests.list()
	slices.SortStableFunc(arrivals, func(x, y *request) int { return cmp.Compare(x.arrival(), y.arrival()) })
	if len(arrivals) == 0 {
		return
	}
	span := float64(arrivals[len(arrivals)-1].arrival()-arrivals[0].arrival()) + 1
	first, next, wave := 0, 0, 0
	for _, r := range arrivals {
		for arrivals[wave].arrival() <= r.arrival()-waveUS {
			wave++
		}
		for arrivals[first].arrival() <= r.arrival()-peakUS {
			first++
		}
		for next < len(arrivals) && arrivals[next].arrival() <= r.arrival() {
			next++
		}
		r.evidence.peak = float64(next-first) / peakUS / (float64(len(arrivals)) / span)
		r.evidence.wave = float64(next-wave) / waveUS / (float64(len(arrivals)) / span)
	}
}
