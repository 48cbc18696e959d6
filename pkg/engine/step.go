package engine

import (
	"fmt"

	"blis/pkg/des"
	"blis/pkg/latency"
)

// Start starts a step at time now, with the batch that was formed ahead or a new one. With
// asynchronous scheduling it then forms the next batch. It returns false if there is nothing to do,
// and an error if no sequence can make progress, which is a bug.
func (e *Engine) Start(now des.Time) (bool, error) {
	e.formed = e.formed[:0]
	e.now, e.own.known = now, false
	e.endStores(now)
	if e.pipe != nil {
		return e.startPipelined(now)
	}
	if e.host.filling {
		e.host = host{}
		if e.inFlight { // masks of the step in flight
			e.leaveEarly()
			e.formAhead(now)
			return true, nil
		}
	}
	ahead := e.hasNext
	if ahead {
		e.current, e.next, e.hasNext = e.next, e.current, false
	} else {
		if e.Running()+e.Waiting() == 0 {
			if e.offload != nil {
				e.offerIdle()
			}
			return false, nil
		}
		// A sequence that preempts itself may leave the batch empty. The next batch is formed at once, as
		// vLLM calls its scheduler again at once. If stores began, requests that did not fit may now wait for them.
		e.earlierPreempted = e.earlierPreempted[:0]
		for !e.form(e.current) {
			if len(e.current.Preempted) == 0 && !e.offload.asks(e.current) {
				if e.offload != nil && e.offload.busy() || e.Running() == 0 && e.skipping.grammars ||
					e.lacksEmbeddings() {
					e.waitForTransfer()
					return false, nil
				}
				return false, e.noProgress("cannot schedule any request")
			}
			e.earlierPreempted = append(e.earlierPreempted, e.current.Preempted...)
			e.formed = e.formed[:0]
		}
		e.current.Preempted = append(e.current.Preempted, e.earlierPreempted...)
	}
	e.current.EarlierVictims, e.lostVictims = e.lostVictims, 0
	switch {
	case e.offload != nil:
		e.startWithTier(now)
	case e.grammars != nil:
		if e.startMasked(now, ahead); e.host.filling {
			return true, nil
		}
		e.formAhead(now)
		return true, nil
	default:
		e.start(now)
	}
	if e.cfg.AsyncScheduling && !e.late && e.Running()+e.Waiting() > 0 {
		if e.hasNext = e.form(e.next); !e.hasNext {
			e.lostVictims = len(e.next.Preempted)
		}
		if e.offload != nil {
			e.askAll(e.next, e.end(max(e.current.End, e.next.notBefore), e.next.length))
		}
	} else if e.offload != nil {
		e.offerIdle()
	}
	e.used = e.cache.Total() - e.cache.Free()
	return true, nil
}

func (e *Engine) start(now des.Time) {
	e.inFlight = true
	e.current.Start, e.current.End = now, e.end(now, e.current.length)
}

// end returns when a step ends that starts at a time and has this length by itself.
func (e *Engine) end(start, length des.Time) des.Time {
	if e.slow != nil {
		length = e.slow(start, length)
	}
	return start + length
}

// form fills b and reports whether it holds any tokens. The sequences' counts then assume that it
// has run.
func (e *Engine) form(b *batch) bool {
	e.begin(b)
	e.cache.BeginStep()
	budget := e.cfg.MaxNumBatchedTokens
	e.limitChunks()
	if e.cadence != nil {
		e.beginCadence()
	}
	if e.encoder != nil {
		e.encoder.left = e.encoder.Budget
		if e.encoder.remote != nil {
			e.encoder.remote.lacking = false
		}
	}
	switch {
	case e.spec != nil:
		e.scheduleDrafted(b, &budget)
	case e.pipe != nil || e.encoder != nil && e.encodes() || !e.scheduleRunning(b, &budget):
		e.scheduleInOrder(b, &budget)
	}
	if len(b.Preempted) == 0 {
		switch {
		case e.offload != nil:
			e.admitWithTier(b, &budget)
		case e.spec != nil:
			e.admitDrafted(b, &budget)
		default:
			e.admit(b, &budget)
		}
	}
	if e.features {
		e.noteFeatures(b)
	}
	if e.cfg.KeepBatches {
		b.sortEntries()
	}
	if e.offload != nil {
		if len(b.Preempted) > 0 {
			e.offload.blocked = e.wait.heap[0].seq
		}
		e.offer(b)
	}
	switch {
	case e.spec != nil:
		e.spec.left = budget
		e.advanceDrafted(b)
	case e.pipe != nil:
		e.advancePipelined(b)
	default:
		e.advance(b)
	}
	e.count(b)
	e.formed = append(e.formed, &b.Step)
	if b.Prefill+b.Decode == 0 {
		if e.offload != nil {
			e.askAll(b, e.now)
		}
		return false
	}
	// A copy of b.Batch, just written, would wait for its fields to reach the processor's cache.
	b.length = e.model.Step(latency.Batch{Prefill: b.Prefill, Decode: b.Decode, Context: b.Context,
		LongestContext: b.LongestContext, Chunks: b.Chunks, PriorContext: b.PriorContext, Pairs: b.Pairs,
		WindowContext: b.WindowContext, WindowPriorContext: b.WindowPriorContext, WindowPairs: b.WindowPairs,
		Drafts: b.Drafts, Proposals: b.Proposals, Adapters: b.Adapters})
	if e.features {
		b.length += b.AdapterUS + b.EncoderUS
	}
	return true
}

// noteFeatures notes in b, whose sequences are scheduled, what its features need.
func (e *Engine) noteFeatures(b *batch) {
	if e.skips() {
		e.endSkips()
	}
	if e.cadence != nil {
		e.endCadence(b)
	}
	if e.lora != nil {
		e.useAdapters(b)
	}
	if e.grammars != nil {
		e.noteMasks(b)
	}
	if e.encoder != nil {
		e.countItems(b)
	}
}

// count records the state in which b was formed.
func (e *Engine) count(b *batch) {
	b.Running, b.Waiting = e.Running(), e.Waiting()
	b.UsedBlocks = e.cache.Total() - e.cache.Free()
	e.stats.PeakRunning = max(e.stats.PeakRunning, b.Running)
	e.stats.PeakBlocks = max(e.stats.PeakBlocks, b.UsedBlocks)
	e.stats.PeakPrefill, e.stats.PeakDecode = max(e.stats.PeakPrefill, b.Prefill), max(e.stats.PeakDecode, b.Decode)
}

// begin empties b, the next batch to form. Fields that form sets in any case stay.
func (e *Engine) begin(b *batch) {
	e.newest++
	b.number = e.newest
	b.Batch = latency.Batch{}
	b.Admitted, b.Preempted, b.Resumed = b.Admitted[:0], b.Preempted[:0], b.Resumed[:0]
	b.Entries, b.EarlierVictims, b.ticked, b.decoding, b.coasted = b.Entries[:0], 0, false, 0, false
	b.finishing, b.individual = b.finishing[:0], b.individual[:0]
	if e.features {
		e.skipping.adapters, e.skipping.grammars, e.skipping.items = false, false, false
		b.clearFeatures()
	}
}

// clearFeatures empties what the features of an engine note in a batch.
func (b *batch) clearFeatures() {
	b.AdapterLoads, b.AdapterCopies, b.AdapterUS = 0, 0, 0
	b.Masks, b.MaskUS, b.MaskWaitUS, b.masked, b.deferred = 0, 0, 0, b.masked[:0], false
	b.EncodedItems, b.EncodedTokens, b.EncoderUS = 0, 0, 0
	b.encoded, b.withItems = b.encoded[:0], b.withItems[:0]
	b.drafted, b.flights = b.drafted[:0], b.flights[:0]
}

// Stop accounts for the part of a step in flight before now, the end of the simulation.
func (e *Engine) Stop(now des.Time) {
	e.endStores(now)
	if e.inFlight && now > e.current.Start { // it may wait for stores
		e.account(now)
	}
	if e.pipe != nil {
		e.stopPipelined(now)
	}
}

func (e *Engine) account(now des.Time) {
	start := e.current.Start
	if e.pipe != nil {
		start = e.pipe.since(start, now)
	}
	d := min(now, e.current.End) - start
	e.stats.BusyUS += d
	e.stats.BlockUS += float64(float64(d) * float64(e.used))
	if e.cfg.Intensity != nil {
		e.stats.ComputeUS += float64(float64(d) * e.cfg.Intensity.Of(e.current.Batch))
	}
}

// remaining returns how many tokens q still has to compute. The last token that it generates is
// never computed, unless q overruns.
func (q *sequence) remaining() int32 {
	if q.generated == q.output && !q.overruns {
		return 0
	}
	return q.input + q.generated - q.computed
}

// visible returns how many of the first upto tokens of q clients have.
func (q *sequence) visible(upto int) int { return min(upto, int(q.input+q.emitted)) }

// scheduleRunning schedules the running sequences: the decoding ones as a group, the individual
// ones in turn. It does nothing and returns false where the order of admission decides who gets
// tokens or blocks.
func (e *Engine) scheduleRunning(b *batch, budget *int) bool {
	left := *budget - e.decoding.Len()
	need := 0
	if left < 0 {
		return false
	}
	if e.decoding.Len() > 0 {
		need = e.cache.TickNeed()
	}
	available := left
	for _, s := range e.individual {
		q := &e.seqs[s]
		n := e.runningTokens(q, int(q.remaining()))
		if n > left {
			if q.admission < e.newestDecoding {
				return false
			}
			n = left
		}
		n = e.align(q, int(q.computed), n)
		if n > 0 && e.cache.DependsOnWriter(q.kv) {
			return false
		}
		need += e.cache.BlocksNeeded(q.kv, int(q.computed)+n)
		left -= n
	}
	if need > e.cache.Free() {
		return false
	}
	if e.decoding.Len() > 0 {
		e.tick(b)
	}
	for _, s := range e.individual {
		q := &e.seqs[s]
		n := e.align(q, int(q.computed), min(e.runningTokens(q, int(q.remaining())), available))
		available -= n
		e.extend(b, q, n)
	}
	e.cache.Settle()
	*budget = left
	return true
}

// tick gives each decoding sequence a token in b, which holds nothing else yet. The cache is settled later.
func (e *Engine) tick(b *batch) {
	n, t := e.decoding.Len(), e.cache.Ticks()
	b.ticked, b.decoding, b.tick = true, n, t+1
	if e.cfg.KeepBatches {
		e.keepDecoding(b)
	}
	e.newestTicked = b.number
	b.Decode, b.Context, b.WindowContext = int64(n), e.context+int64(n)*t, e.window.total(t)
	b.LongestContext = e.longestBase() + t
	e.cache.Tick()
	e.window.advance(t + 1)
}

// extend schedules n tokens of q in b; it returns false if there are too few free blocks.
func (e *Engine) extend(b *batch, q *sequence, n int) bool {
	if n == 0 {
		return true
	}
	if e.spec != nil {
		return e.extendDrafted(b, q, n)
	}
	if q.onClock { // it overruns, and the blocks that its tokens fill are published
		e.collect(q)
	}
	upto := int(q.computed) + n
	if !e.cache.Extend(q.kv, upto, q.visible(upto), int(q.computed), e.computing(q)) {
		return false
	}
	if e.cadence != nil && q.inPrompt {
		e.cadence.prefills = true
	}
	e.compute(b, q, n)
	return true
}

// compute counts n tokens of q, which has blocks for them, in b.
func (e *Engine) compute(b *batch, q *sequence, n int) {
	e.add(b, q, int64(n), 1)
	e.keep(b, q, n)
	q.computed += int32(n)
	q.lastTokens, q.lastBatch = int32(n), b.number
}

// computing returns how many tokens of q are in the step in flight.
func (e *Engine) computing(q *sequence) int {
	if e.pipe != nil {
		return int(e.pipe.seqs[q.kv].flying)
	}
	if e.inFlight && q.lastBatch == e.current.number {
		return int(q.lastTokens)
	}
	return 0
}

// add adds n tokens of q to the totals of b, or subtracts them if sign is -1.
func (e *Engine) add(b *batch, q *sequence, n, sign int64) {
	c := int64(q.computed)
	if (q.generated > 0 || q.pulled) && q.remaining() == 1 {
		b.Decode += sign
		b.Context += sign * c
		b.LongestContext = max(b.LongestContext, c)
		b.WindowContext += sign * e.window.clip(c)
		return
	}
	b.Prefill += sign * n
	b.Chunks += sign
	b.PriorContext += sign * c
	b.Pairs += sign * (n*c + n*(n+1)/2)
	b.WindowPriorContext += sign * e.window.clip(c)
	b.WindowPairs += sign * e.window.pairs(c, n)
}

// advance updates the sequences for a finished b: one that has computed all its tokens gets a new
// one and is decoding or finishing from then on, or has one more to compute if it overruns.
func (e *Engine) advance(b *batch) {
	for e.decoding.Next() <= e.cache.Ticks() {
		e.own.ordered = false
		s := e.decoding.Pop().Slot
		e.materialize(s)
		b.finishing = append(b.finishing, s)
		if q := &e.seqs[s]; q.overruns {
			q.state = individual
			e.individual = append(e.individual, s)
			continue
		}
		e.seqs[s].state = finishing
		e.finishing = append(e.finishing, s)
	}
	kept, overrun := e.individual[:0], false
	for _, s := range e.individual {
		q := &e.seqs[s]
		if q.generated < q.output {
			if q.remaining() > 0 {
				kept = append(kept, s)
				continue
			}
			b.individual = append(b.individual, s)
			q.generated++
		}
		switch {
		case q.generated < q.output:
			e.startDecoding(s)
			if e.offload != nil {
				e.startFilling(s, q)
			}
		case q.remaining() > 0:
			overrun = true
			kept = append(kept, s)
		default:
			q.state = finishing
			e.finishing = append(e.finishing, s)
		}
	}
	if e.individual = kept; overrun {
		e.sortByAdmission(e.individual)
	}
}

// noProgress returns the error of a replica that makes no progress.
func (e *Engine) noProgress(what string) error {
	var s int32
	switch {
	case len(e.individual) > 0:
		s = e.individual[0]
	case e.decoding.Len() > 0:
		s = e.decoding.First().Slot
	case len(e.finishing) > 0:
		s = e.finishing[0]
	case len(e.wait.heap) > 0:
		s = e.wait.heap[0].seq
	default:
		s = e.loaders[0]
	}
	return &NoProgressError{
		Tag: e.seqs[s].tag,
		Msg: fmt.Sprintf("the replica %s: %d running, %d waiting, %d of %d blocks free",
			what, e.Running(), e.Waiting(), e.cache.Free(), e.cache.Total()),
	}
}

// NoProgressError reports a replica that has work and makes no progress.
type NoProgressError struct {
	Tag int32 // a request that makes no progress
	Msg string
}

func (e *NoProgressError) Error() string { return "engine: " + e.Msg }
