package engine

import (
	"math"
	"slices"
)

// Speculation is speculative decoding as in vLLM 0.33 (Scheduler.schedule and update_from_output in
// vllm/v1/core/sched/scheduler.py, AsyncScheduler). A drafter proposes tokens after each step, and the next step of the
// sequence computes them together with its newest token. The step then gives that token's successor and one more for
// each draft before the first rejected one.
type Speculation struct {
	// Tokens is the number of drafts after a step. If Schedule is set, it is Schedule[n] after a step with n sequences,
	// and the last element for more.
	Tokens   int
	Schedule []int
	// Lookahead is the number of slots behind the tokens of a step that a sequence has blocks for, since the drafter
	// writes keys and values there.
	Lookahead int
	// BudgetSlots is what a sequence in a batch takes of the token budget besides its tokens.
	BudgetSlots int
	// HashLookahead is that of the cache.
	HashLookahead int
	// MaxModelLen is the maximum length of a sequence, 0: none.
	MaxModelLen int
	// Rates[i] is the probability that draft i is accepted if the drafts before it are.
	Rates []float64
}

// Drafts are what a Request has for speculative decoding.
type Drafts struct {
	// Seed determines which of its drafts are accepted.
	Seed uint64
	// Acceptance is the probability of a draft, of each if those before it are accepted; negative: the Rates.
	Acceptance float64
}

// speculation is the state of speculative decoding. All running sequences are individual ones. The generated tokens of
// a sequence are those that it has and the placeholders: a token and all drafts for each of its batches in flight.
type speculation struct {
	*Speculation
	seqs []draftState // by their number in the cache
	// Of the batch being formed: whether it has running sequences, any of which computed only a part of its prompt in
	// its last step; whether a sequence in it can use drafts; the budget that is left; whether a padded one did not
	// fit.
	hasRunning, hasPrompts, needed bool
	left                           int
	padding                        bool
}

// draftState is what a sequence has besides the fields of other ones.
type draftState struct {
	Drafts
	seq       int32
	maxTokens int64 // of its output, if no token ends it
	// drafts are proposed for its next step; padded: they stand for none. flying counts its tokens in formed batches.
	drafts, flying int32
	padded         bool
	// inPrompt: its last step computed a part of its prompt.
	inPrompt bool
}

// drafted is a sequence in a batch.
type drafted struct {
	seq, tokens, drafts int32
	context             int64
	// decodes: it computes its newest token. yields: it gets tokens at the end. stale: it was preempted since.
	decodes, padded, yields, stale bool
}

func newSpeculation(cfg *Speculation) *speculation {
	if cfg == nil {
		return nil
	}
	return &speculation{Speculation: cfg}
}

// open notes a new sequence.
func (x *speculation) open(s int32, q *sequence, r *Request) {
	for len(x.seqs) <= int(q.kv) {
		x.seqs = append(x.seqs, draftState{})
	}
	most := int64(r.Output)
	if r.EOS {
		if most = math.MaxInt64 / 2; x.MaxModelLen > 0 {
			most = int64(x.MaxModelLen - r.Input)
		}
	}
	q.overruns = true
	x.seqs[q.kv] = draftState{Drafts: r.Drafts, seq: s, maxTokens: most}
}

// slots is the number of tokens that a sequence has blocks for when this many are computed.
func (x *speculation) slots(upto int) int {
	if n := upto + x.Lookahead; x.MaxModelLen == 0 || n < x.MaxModelLen {
		return n
	}
	return x.MaxModelLen
}

// known is how many of the first upto tokens of q can be hashed.
func (x *speculation) known(q *sequence, upto int) int {
	return min(upto, int(q.input+q.emitted)-x.HashLookahead)
}

// scheduleDrafted schedules the running sequences, each with its drafts.
func (e *Engine) scheduleDrafted(b *batch, budget *int) {
	x := e.spec
	*budget -= x.BudgetSlots
	x.hasRunning, x.hasPrompts, x.needed, x.padding = false, false, x.Lookahead == 0, false
	e.scheduled = e.scheduled[:0]
	for i := 0; i < len(e.individual) && *budget > 0; i++ {
		q := &e.seqs[e.individual[i]]
		n := e.draftedTokens(q, *budget)
		at, skipped := e.makeRoom(b, i, n, budget)
		if at < 0 {
			if !e.cfg.ContinueAfterSelfPreemption {
				return
			}
			i = len(e.scheduled) - 1
			continue
		}
		if e.scheduled = append(e.scheduled, n); n > 0 {
			*budget -= n + x.BudgetSlots
			x.hasRunning, x.hasPrompts = true, x.hasPrompts || x.seqs[q.kv].inPrompt
		}
		for range skipped {
			e.scheduled = append(e.scheduled, 0)
		}
		i = at + skipped
	}
}

// draftedTokens is the number of tokens that the running q computes in the next batch.
func (e *Engine) draftedTokens(q *sequence, budget int) int {
	x := e.spec
	d := &x.seqs[q.kv]
	// It is sure to have all its output even if all drafts in flight are rejected.
	ahead := q.generated - q.emitted
	if ahead > 0 && int64(q.computed)+2-int64(ahead) >= int64(q.input)+d.maxTokens {
		return 0
	}
	n := min(e.runningTokens(q, int(q.remaining()+d.drafts)), budget)
	if x.MaxModelLen > 0 {
		n = min(n, x.MaxModelLen-1-int(q.computed))
	}
	return n
}

// extendDrafted is extend with the drafts of q.
func (e *Engine) extendDrafted(b *batch, q *sequence, n int) bool {
	upto := int(q.computed) + n
	if !e.cache.Extend(q.kv, e.spec.slots(upto), e.spec.known(q, upto), int(q.computed), 0) {
		return false
	}
	if e.cadence != nil && q.inPrompt {
		e.cadence.prefills = true
	}
	e.computeDrafted(b, q, n)
	return true
}

// computeDrafted counts n tokens of q, the last ones of which are drafts, in b.
func (e *Engine) computeDrafted(b *batch, q *sequence, n int) {
	x := e.spec
	d := &x.seqs[q.kv]
	x.needed = x.needed || !x.isUnused(q, d, n)
	drafts := max(0, min(d.drafts, int32(n)-q.remaining()))
	p := drafted{seq: d.seq, tokens: int32(n), drafts: drafts, context: int64(q.computed), padded: d.padded,
		decodes: (q.generated > 0 || q.pulled) && q.remaining() == 1}
	d.drafts, d.padded = 0, false
	e.add(b, q, int64(p.tokens-drafts), 1)
	b.Drafts += int64(drafts)
	e.keep(b, q, n)
	b.drafted = append(b.drafted, p)
	q.computed += p.tokens
	q.lastTokens, q.lastBatch = p.tokens, b.number
}

// isUnused reports whether the drafts after a step with n tokens of q are sure not to be verified.
func (x *speculation) isUnused(q *sequence, d *draftState, n int) bool {
	if int(q.computed)+n < int(q.input+q.emitted) {
		return true
	}
	least := int64(q.emitted) + 1
	if q.generated > q.emitted {
		least++
	}
	return least >= d.maxTokens
}

// undoDrafted removes q, a victim, from b.
func (e *Engine) undoDrafted(b *batch, q *sequence, n int) {
	if n == 0 {
		return
	}
	s := e.spec.seqs[q.kv].seq
	i := slices.IndexFunc(b.drafted, func(p drafted) bool { return p.seq == s })
	p := b.drafted[i]
	q.computed -= p.tokens
	e.add(b, q, int64(p.tokens-p.drafts), -1)
	b.Drafts -= int64(p.drafts)
	b.drafted = slices.Delete(b.drafted, i, i+1)
	b.LongestContext = 0
	for _, p := range b.drafted {
		if p.decodes {
			b.LongestContext = max(b.LongestContext, p.context)
		}
	}
	e.withdraw(b, q)
}

// preemptDrafted forgets the placeholders of s. Its tokens in the step in flight still come. It is admitted with no
// more tokens than it has, so that its drafts are not used.
func (e *Engine) preemptDrafted(s int32) {
	q := &e.seqs[s]
	d := &e.spec.seqs[q.kv]
	q.generated, d.flying = q.emitted, 0
	if !e.inFlight {
		return
	}
	for i := range e.current.drafted {
		if p := &e.current.drafted[i]; p.seq == s {
			p.stale = true
		}
	}
}

// admitDrafted is admit. A request with a single token to compute gets places for drafts in a batch that only decodes,
// so that its sequences are alike.
func (e *Engine) admitDrafted(b *batch, budget *int) {
	x := e.spec
	for *budget > 0 && len(e.wait.heap) > 0 && e.Running() < e.cfg.MaxNumSeqs {
		s := e.wait.heap[0].seq
		if e.passOver(s) {
			continue
		}
		q := &e.seqs[s]
		d := &x.seqs[q.kv]
		tokens := int(q.input + q.generated)
		cached := e.cache.Lookup(q.kv, tokens-1)
		if e.defersPrompt(cached, tokens) {
			break
		}
		n, pad := tokens-cached, false
		if n == 1 && x.Schedule == nil && !x.hasPrompts && (x.hasRunning || cached > 0) &&
			(x.MaxModelLen == 0 || cached+n+x.Tokens < x.MaxModelLen) {
			n, pad = n+x.Tokens, true
			if x.padding = n > *budget; x.padding {
				break
			}
		}
		if n = e.limitChunk(n); n > *budget && !e.cfg.ChunkedPrefill {
			break
		}
		n = min(n, *budget)
		reserve := 0
		if e.cfg.ReserveFullSequence {
			reserve = tokens
		}
		if !e.cache.AdmitAhead(q.kv, x.known(q, cached+n), x.slots(cached+n), reserve, e.spareBlocks()) {
			break
		}
		e.dequeue(s)
		q.computed = int32(cached)
		*budget -= n + x.BudgetSlots
		if pad {
			d.drafts, d.padded = int32(x.Tokens), true
		}
		e.enter(b, q, s, tokens, n, cached)
	}
}

// proposals returns how many drafts are proposed after a step with n sequences.
func (x *speculation) proposals(n int) int {
	if len(x.Schedule) > 0 && n > 0 {
		return x.Schedule[min(n, len(x.Schedule)-1)]
	}
	return x.Tokens
}

// advanceDrafted updates the sequences for a finished b, as advance does.
func (e *Engine) advanceDrafted(b *batch) {
	x := e.spec
	next := int32(x.proposals(len(b.drafted)))
	if x.needed {
		b.Proposals = int64(next)
	}
	for i := range b.drafted {
		p := &b.drafted[i]
		q := &e.seqs[p.seq]
		d := &x.seqs[q.kv]
		d.flying += p.tokens
		if d.inPrompt = q.remaining() > 0; d.inPrompt {
			continue
		}
		p.yields, d.drafts = true, next
		if e.cfg.AsyncScheduling {
			q.generated += 1 + p.drafts
		}
	}
}

// finishDrafted gives the sequences of b, which has ended, their tokens.
func (e *Engine) finishDrafted(b *batch) {
	for i := range b.drafted {
		p := &b.drafted[i]
		q := &e.seqs[p.seq]
		d := &e.spec.seqs[q.kv]
		if !p.stale {
			d.flying -= p.tokens
		}
		if !p.yields {
			continue
		}
		accepted := e.spec.accepted(q, d, p)
		if p.drafts > 0 {
			e.stats.Verifications++
			e.stats.DraftTokens += int64(p.drafts)
			e.stats.AcceptedTokens += int64(accepted)
		}
		tokens := min(1+accepted, q.output-q.emitted)
		e.receive(q, tokens)
		if p.stale {
			q.generated = q.emitted
		} else {
			q.computed -= p.drafts + 1 - tokens
			if e.cfg.AsyncScheduling {
				q.generated -= 1 + p.drafts - tokens
			} else {
				q.generated = q.emitted
			}
			e.cache.Publish(q.kv, e.spec.known(q, int(q.computed-d.flying)))
		}
		if q.emitted == q.output {
			e.finished = append(e.finished, p.seq)
		}
	}
}

// accepted is the number of drafts of q that a step accepts.
func (x *speculation) accepted(q *sequence, d *draftState, p *drafted) (n int32) {
	if p.padded {
		return 0
	}
	for n < p.drafts {
		rate := d.Acceptance
		if rate < 0 {
			rate = x.Rates[n]
		}
		if draw(d.Seed, uint64(q.emitted+n)) >= rate {
			break
		}
		n++
	}
	return n
}

// receive gives q tokens that clients get when the step in flight ends.
func (e *Engine) receive(q *sequence, tokens int32) {
	r, later := &e.result, tokens-1
	if q.emitted == 0 {
		r.First = append(r.First, q.tag)
	} else {
		gap := e.deliveredAt - q.lastTokenAt
		r.Gaps = append(r.Gaps, gap)
		q.gaps.add(gap, 1, e.cfg.KeepGaps)
	}
	if later > 0 {
		q.gaps.add(0, int64(later), e.cfg.KeepGaps)
		for range later {
			r.Gaps = append(r.Gaps, 0)
		}
	}
	q.emitted += tokens
	q.lastTokenAt = e.deliveredAt
}

// forget removes s from the sequences of b.
func (b *batch) forget(s int32) {
	b.drafted = slices.DeleteFunc(b.drafted, func(p drafted) bool { return p.seq == s })
}

func (x *speculation) clone() *speculation {
	if x == nil {
		return nil
	}
	c := *x
	c.seqs = slices.Clone(x.seqs)
	return &c
}

// draw returns the random number from 0 to below 1 of a position in the output: SplitMix64 (Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", 2014).
func draw(seed, position uint64) float64 {
	z := seed + 0x9e3779b97f4a7c15*(position+1)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}
